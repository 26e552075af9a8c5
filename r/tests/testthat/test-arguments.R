# Arguments that the functions do not have, or of another kind, in one sentence.

x <- as.matrix(mtcars[, -1])
y <- mtcars$mpg

refused <- function(code, message) {
  error <- tryCatch(suppressWarnings(code), error = identity)
  expect_s3_class(error, "error")
  expect_match(conditionMessage(error), message, fixed = TRUE)
  expect_false(grepl("__init__|\n", conditionMessage(error)))
}

test_that("arguments of glmnet without a counterpart are named, with what to do", {
  needs_python()
  refused(fl_cv(x, y, type.measure = "mse"), "`type.measure` of glmnet is not available")
  refused(fl_cv(x, y, foldid = rep(1:4, 8)), "use `nfolds` and `seed`")
  refused(fl_cv(x, y, nlambda = 20), "`nlambda` of glmnet is not available")
  refused(fl_fit(x, y, exclude = 1), "use penalty.factor = c(column = Inf)")
  refused(fl_fit(x, y, thresh = 1e-9), "the accuracy is `tol`")
  # What glmnet and fedlasso use differently is not taken as the other one.
  refused(fl_cv(x, y, keep = TRUE), "`keep` is TRUE; give names of columns")
  for (name in setdiff(names(formals(glmnet::cv.glmnet)), c("...", names(formals(fl_fit))))) {
    if (name != "lambda") expect_true(name %in% names(fedlasso:::of_glmnet), label = name)
  }
  for (name in setdiff(names(formals(glmnet::glmnet)), c("...", names(formals(fl_fit))))) {
    expect_true(name %in% names(fedlasso:::of_glmnet), label = name)
  }
})

test_that("parameters of Python have their names in R, and unknown ones are refused", {
  needs_python()
  refused(fl_fit(x, y, cv = 3), "`cv` is `nfolds` in R")
  refused(fl_fit(x, y, site_effect = TRUE), "did you mean `site_effects`")
  refused(fl_fit(x, y, foo = 1), "there is no argument `foo`")
  refused(fl_fit(x, y, ties = "breslow"), "there is no argument `ties` with family = \"gaussian\"")
  refused(fl_fit(x, y, intervals = 2), "`intervals` is 2; give names of columns")
  refused(fl_fit(x, y, family = "multinomial"), "`family` is \"multinomial\"; use one of")
  refused(fl_fit(x, y[1:9]), "`y` has 9 values for 32 rows of `x`")
  refused(fl_cv(x, y, nfolds = 1), "`nfolds` is 1")
  refused(fl_fit(x, y, lambda = "a"), "`lambda` is 'a'; give a number, or NULL")
  refused(fl_fit(x, y, site = c(NA, rep(1, 31))), "`site` is missing in 1 row;")
  refused(plot(fl_fit(x, y, lambda = 1)), "no curve or path to plot")
})

test_that("numbers become levels, in the order that is given", {
  needs_python()
  fit <- function(...) rownames(coef(suppressWarnings(fl_fit(mpg ~ wt + cyl, mtcars, lambda = 0.1, min_level = 1, ...))))
  expect_identical(fit(categorical = "cyl"), c("(Intercept)", "wt", "cyl=6", "cyl=8"))
  expect_identical(fit(categorical = list(cyl = c(8, 6, 4))), c("(Intercept)", "wt", "cyl=6", "cyl=4"))
  expect_error(fit(categorical = "zz"), "no predictor has this name")
})

test_that("new rows in a matrix are taken by the names of the columns", {
  needs_python()
  fit <- suppressWarnings(fl_fit(mpg ~ wt + hp, mtcars, lambda = 0.1))
  for (rows in list(x[, c("wt", "hp")], x[, c("hp", "wt")], x)) {
    expect_equal(predict(fit, rows), predict(fit, mtcars))
  }
})

test_that("deviance and its ratio are those of glmnet", {
  needs_python()
  needs_glmnet()
  fit <- suppressWarnings(fl_fit(x, y, lambda = 0.5))
  other <- glmnet::glmnet(x, y, lambda = 0.5, thresh = 1e-20, maxit = 1e7)
  expect_equal(deviance(fit), deviance(other), tolerance = 1e-8)
  expect_equal(glance(fit)$dev.ratio, other$dev.ratio, tolerance = 1e-8)
  expect_equal(glance(fit)$nulldev, other$nulldev, tolerance = 1e-8)
})

test_that("a check of a data frame names arguments of R and no file", {
  needs_python()
  data <- transform(mtcars, wt = replace(wt, 1:6, NA), hospital = c(NA, rep(c("north", "south"), length.out = 31)))
  lacking <- fl_check(data, target = "mpg", site = "hospital")
  expect_match(lacking$text, "site data: 1 row without a site in 'hospital'; fill it", fixed = TRUE)
  expect_false(grepl("data.csv|column", lacking$text))
  expect_identical(lacking$problems, 1L)
  found <- fl_check(data[-1, ], target = "mpg", site = "hospital")
  expect_match(found$text, "(missing = \"mean\")", fixed = TRUE)
  expect_match(found$text, "Add to fl_fit(), if you agree: missing = \"mean\", categorical = ", fixed = TRUE)
  expect_false(grepl("--", found$text, fixed = TRUE))
  expect_match(fl_check(data[-1, ], target = "no", site = "hospital")$text, "'no': is not in the data", fixed = TRUE)
})

test_that("the counts above a path are those of the next smaller penalty, as in glmnet", {
  across <- c(0, 1, 3)
  ticks <- c(0, 0.5, 1, 2, 3)
  expect_identical(fedlasso:::counts_at(ticks, across, c(0, 2, 5), FALSE), c(0, 2, 2, 5, 5))
  # Along lambda smaller penalties are on the left.
  expect_identical(fedlasso:::counts_at(ticks, rev(across), c(0, 2, 5), TRUE), c(5, 5, 2, 2, 0))
})
