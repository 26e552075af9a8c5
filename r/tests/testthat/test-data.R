# Data frames, factors, text and missing values.

frame <- function(rows = 180) {
  set.seed(2, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  data <- data.frame(
    age = round(rnorm(rows, 50, 10), 1),
    visits = rpois(rows, 3),
    smoker = runif(rows) < 0.4,
    ward = sample(c("burns", "heart", "main"), rows, replace = TRUE),
    stage = factor(sample(c("II", "I", "III"), rows, replace = TRUE), levels = c("II", "I", "III")),
    hospital = rep(c("north", "south", "west"), each = rows / 3)
  )
  data$y <- 0.1 * data$age + data$smoker + 2 * (data$ward == "heart") + (data$stage == "III") +
    rnorm(rows)
  data
}

fit_files <- function(data, ...) {
  folder <- tempfile("files")
  dir.create(folder)
  sites <- split(data[names(data) != "hospital"], data$hospital)
  files <- file.path(folder, paste0(names(sites), ".csv"))
  for (k in seq_along(sites)) {
    write.csv(sites[[k]], files[k], row.names = FALSE, na = "")
  }
  out <- file.path(folder, "model")
  arguments <- c("fit", files, "--target", "y", ..., "--no-compare", "--out", out)
  errors <- file.path(folder, "errors")
  status <- fedlasso:::run_python(c("-m", "fedlasso", arguments), stdout = FALSE, stderr = errors)
  expect_identical(if (status != 0L) readLines(errors), NULL)
  fl_read(out)
}

test_that("a data frame gives the model of fedlasso fit on the same data", {
  needs_python()
  data <- frame()
  data$stage <- as.character(data$stage)
  data$age[seq(1, 180, 17)] <- NA
  data$visits[3] <- NA
  data$ward[seq(5, 180, 23)] <- NA
  data$smoker[7] <- NA
  files <- fit_files(data, "--penalty", "0.05", "--missing", "mean")
  own <- fl_fit(y ~ ., data = data, site = "hospital", lambda = 0.05, missing = "mean")
  expect_identical(own$columns, files$columns)
  expect_equal(coef(own), coef(files), tolerance = 1e-12)
  expect_equal(predict(own, data), predict(files, data), tolerance = 1e-12)
  expect_error(
    fl_fit(y ~ ., data = data, site = "hospital", lambda = 0.05), "values are missing .*age 4.* missing = \"mean\""
  )
})

test_that("the first level of a factor is the reference, and new data need not have all levels", {
  needs_python()
  data <- frame()
  own <- fl_fit(y ~ age + stage + ward, data = data, site = "hospital", lambda = 0.02)
  expect_identical(own$columns, c("age", "stage=I", "stage=III", "ward=heart", "ward=main"))
  x <- model.matrix(~ age + stage + ward, data)[, -1]
  same <- fl_fit(x, data$y, site = data$hospital, lambda = 0.02)
  expect_equal(unname(as.matrix(coef(own))), unname(as.matrix(coef(same))), tolerance = 1e-8)
  few <- droplevels(data[data$stage == "III", ])
  expect_equal(predict(own, few), predict(own, data)[data$stage == "III"])
  few$stage <- as.character(few$stage)
  expect_equal(predict(own, few), predict(own, data)[data$stage == "III"])
  few$stage <- "IV"
  expect_error(predict(own, few), "'IV'")
  expect_error(predict(own, data["age"]), "lack the column \"stage\"")
})

test_that("formulas with anything but columns are expanded by R", {
  needs_python()
  data <- frame()
  own <- fl_fit(y ~ age * smoker + log(visits + 1) + stage, data = data, site = "hospital", lambda = 0.02)
  expect_identical(
    own$columns,
    c("age", "smokerTRUE", "log(visits + 1)", "stageI", "stageIII", "age:smokerTRUE")
  )
  few <- data[4:6, ]
  expect_equal(predict(own, few), predict(own, data)[4:6])
  # Rows with the same age agree in all columns of its spline, but are no repeated visits.
  expect_silent(
    splines <- fl_fit(y ~ splines::ns(age, 3), data = data, site = "hospital", lambda = 0.01)
  )
  expect_equal(predict(splines, few), predict(splines, data)[4:6])
})

test_that("sparse matrices, matrices and data frames of numbers give one model", {
  needs_python()
  drawn <- draw("binomial")
  drawn$x[abs(drawn$x) < 0.5] <- 0
  own <- fit_drawn(drawn, "binomial")
  sparse <- drawn
  sparse$x <- Matrix::Matrix(drawn$x, sparse = TRUE)
  same <- fit_drawn(sparse, "binomial")
  expect_equal(coef(same), coef(own), tolerance = 1e-6)
  expect_equal(predict(same, sparse$x[1:4, ]), predict(own, drawn$x[1:4, ]), tolerance = 1e-6)
  framed <- drawn
  framed$x <- as.data.frame(drawn$x)
  expect_equal(coef(fit_drawn(framed, "binomial")), coef(own), tolerance = 1e-6)
  expect_equal(predict(own, framed$x[1:4, ]), predict(own, drawn$x[1:4, ]))
})

test_that("the second level of a factor is 1, and classes keep their names", {
  needs_python()
  drawn <- draw("binomial")
  texts <- c("well", "ill")[drawn$y + 1]
  numbers <- fit_drawn(drawn, "binomial")
  drawn$y <- factor(texts, levels = c("well", "ill"))
  own <- fit_drawn(drawn, "binomial")
  expect_equal(coef(own), coef(numbers))
  expect_setequal(predict(own, drawn$x, type = "class"), c("well", "ill"))
  chance <- predict(own, drawn$x, type = "response")
  expect_equal(predict(own, drawn$x, type = "class"), ifelse(chance > 0.5, "ill", "well"))
  drawn$y <- factor(texts)
  expect_equal(-coef(fit_drawn(drawn, "binomial")), coef(numbers), tolerance = 1e-6)
  drawn$y <- sample(letters[1:3], 240, replace = TRUE)
  expect_error(fit_drawn(drawn, "binomial"), "needs two classes, but the response has 3")
})

test_that("a Surv response and a matrix of time and status are one", {
  needs_python()
  drawn <- draw("cox")
  data <- cbind(as.data.frame(drawn$x), days = drawn$y[, "time"], died = drawn$y[, "status"])
  own <- fl_fit(survival::Surv(days, died) ~ v1 + v2 + v3, data = data, site = drawn$site, lambda = 0.05)
  expect_identical(own$family, "cox")
  same <- fl_fit(drawn$x[, 1:3], as.matrix(drawn$y), family = "cox", site = drawn$site, lambda = 0.05)
  expect_equal(coef(own), coef(same), tolerance = 1e-8)
  expect_error(fl_fit(drawn$x, drawn$y, family = "poisson"), "use family = \"cox\"")
})

test_that("wrong input is refused in one line that names it", {
  needs_python()
  data <- frame()
  expect_error(fl_fit(y ~ ., data = data, site = "clinic"), "`site` is \"clinic\", but no column")
  expect_error(fl_fit(y ~ age, data = data, site = 1:3), "`site` has 3 values for 180 rows")
  expect_error(fl_fit(y ~ age, data = data, lambda = -1), "penalty|lambda")
  expect_error(fl_fit(y ~ age, data = data, lambda = 1:2), "`lambda` has several values")
  expect_error(fl_fit(y ~ age), "needs `data`")
  expect_error(fl_fit(as.matrix(data["age"])), "`y` is missing")
  expect_error(fl_fit(y ~ age + offset(visits), data = data), "give the offset as `offset`")
  expect_error(fl_fit(y ~ age, data = data, keep = "agee", lambda = 1), "'agee'.*did you mean 'age'")
  expect_error(fl_fit(ward ~ age, data = data), "not numeric")
  data$born <- as.Date("1970-01-01") + seq_len(180)
  expect_error(fl_fit(y ~ ., data = data, site = "hospital"), "column \"born\" is a Date")
  expect_error(fl_fit(data[["age"]], data$y, penalty.factor = 1:3, lambda = 1), "has 3 values for 1 columns")
  expect_error(fl_cv(y ~ age, data = data, lambda = 1), "fl_cv\\(\\) chooses the penalty")
})
