# What a model offers, and how it is stored.

cars <- function() {
  data <- mtcars
  data$hospital <- rep(c("north", "south"), 16)
  suppressWarnings(fl_cv(mpg ~ ., data = data, site = "hospital", nfolds = 5))
}

test_that("cross-validation has glmnet's names, and lambda.1se is the default", {
  needs_python()
  cv <- cars()
  expect_true(all(c("lambda", "cvm", "cvsd", "cvup", "cvlo", "nzero", "lambda.min", "lambda.1se") %in% names(cv)))
  expect_false(is.unsorted(-cv$lambda))
  least <- which.min(cv$cvm)
  expect_equal(cv$lambda.min, cv$lambda[least])
  within <- cv$cvm <= cv$cvm[least] + cv$cvsd[least]
  expect_equal(cv$lambda.1se, max(cv$lambda[within]))
  expect_equal(coef(cv), coef(cv, s = "lambda.1se"))
  expect_equal(as.matrix(coef(cv, s = cv$lambda.1se)), as.matrix(coef(cv)), ignore_attr = TRUE)
  expect_equal(predict(cv, mtcars), predict(cv, mtcars, s = cv$lambda.1se))
  expect_identical(dim(coef(cv, s = c(1, 2))), c(11L, 2L))
  expect_identical(predict(cv, type = "nonzero"), setdiff(rownames(coef(cv))[coef(cv)[, 1] != 0], "(Intercept)"))
  expect_equal(unname(cv$nzero)[least], length(predict(cv, s = "lambda.min", type = "nonzero")))
  expect_error(coef(cv, s = "lambda.2se"), "use \"lambda.min\", \"lambda.1se\" or a number")
})

test_that("predictions are the coefficients times the columns", {
  needs_python()
  cv <- cars()
  x <- cbind(1, as.matrix(mtcars[cv$columns]))
  expect_equal(predict(cv, mtcars), drop(x %*% as.matrix(coef(cv))), ignore_attr = TRUE)
  # A penalty between two of the path is fitted exactly, and not interpolated.
  between <- suppressWarnings(fl_fit(mpg ~ ., data = mtcars, lambda = 1.05))
  expect_equal(predict(cv, mtcars, s = 1.05), predict(between, mtcars), tolerance = 1e-6)
})

test_that("tables have the columns of broom", {
  needs_python()
  cv <- cars()
  expect_named(tidy(cv), c("lambda", "estimate", "std.error", "conf.low", "conf.high", "nzero"))
  terms <- tidy(cv, "coefficients", s = "lambda.min")
  own <- coef(cv, s = "lambda.min")
  expect_equal(terms$estimate, unname(own[own[, 1] != 0, 1]))
  expect_equal(glance(cv)$nobs, 32)
  expect_equal(nobs(cv), 32)
  rows <- augment(cv, mtcars[1:3, ])
  expect_equal(rows$.fitted, predict(cv, mtcars[1:3, ]))
  expect_equal(nrow(tidy(cv, "coefficients", return_zeros = TRUE)), 11)
})

test_that("intervals are in the table, with ratios if requested", {
  needs_python()
  drawn <- draw("binomial")
  own <- fit_drawn(drawn, "binomial", intervals = c("v1", "v6"))
  terms <- tidy(own)
  named <- terms[terms$term %in% c("v1", "v6"), ]
  expect_equal(nrow(named), 2)
  expect_true(all(named$conf.low < named$debiased & named$debiased < named$conf.high))
  expect_true(all(named$p.value >= 0 & named$p.value <= 1))
  ratios <- tidy(own, exponentiate = TRUE)
  expect_equal(ratios$conf.low[ratios$term == "v1"], exp(named$conf.low[named$term == "v1"]))
})

test_that("an offset belongs to the model", {
  needs_python()
  drawn <- draw("poisson")
  own <- fit_drawn(drawn, "poisson", offset = drawn$offset)
  expect_error(predict(own, drawn$x), "give that of the new rows as `newoffset`")
  link <- predict(own, drawn$x, newoffset = drawn$offset)
  expect_equal(link - drawn$offset, drop(cbind(1, drawn$x) %*% as.matrix(coef(own))), ignore_attr = TRUE)
})

test_that("a stored model predicts in another session", {
  needs_python()
  cv <- cars()
  file <- tempfile(fileext = ".rds")
  saveRDS(cv, file)
  script <- tempfile(fileext = ".R")
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    "library(fedlasso)",
    sprintf("cv <- readRDS(%s)", deparse(file)),
    "cat(sprintf('%.17g', predict(cv, mtcars[1:3, ])), sep = '\\n')",
    "cat(sprintf('%.17g', coef(cv, s = 'lambda.min')[1, 1]), sep = '\\n')"
  ), script)
  printed <- system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE)
  expect_equal(as.numeric(printed), c(predict(cv, mtcars[1:3, ]), coef(cv, s = "lambda.min")[1, 1]))
})

test_that("a card and its folder are written and read", {
  needs_python()
  own <- suppressWarnings(fl_fit(mpg ~ ., data = mtcars, lambda = 0.5))
  folder <- tempfile("cars")
  card <- fl_card(own, folder, open = FALSE)
  expect_true(file.exists(card))
  expect_match(paste(readLines(card), collapse = " "), "mpg")
  again <- fl_read(folder)
  expect_equal(coef(again), coef(own))
  expect_equal(predict(again, mtcars), predict(own, mtcars))
  expect_identical(fl_card(again, open = FALSE), file.path(folder, "card.html"))
  expect_error(fl_card(own, folder, open = FALSE), "already contains a model")
})

test_that("every plot is drawn", {
  needs_python()
  cv <- cars()
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  plot(cv)
  plot(cv, sign.lambda = -1, main = "Cars")
  for (xvar in c("norm", "lambda", "dev")) plot(cv, "path", xvar = xvar, label = TRUE)
  grDevices::dev.off()
  expect_gt(file.size(file), 5000)
})

test_that("printing names the sites, the penalty and the certificate", {
  needs_python()
  cv <- cars()
  expect_output(print(cv), "32 rows at 2 sites.*min .*1se ")
  own <- suppressWarnings(fl_fit(mpg ~ ., data = mtcars, lambda = 0.5))
  expect_output(print(own), "Lasso of 32 rows at 1 site, with 6 of 10 columns at lambda 0.5")
  expect_output(print(own), "above the best possible objective")
  expect_output(print(summary(own)), "certificate")
})

test_that("a check lists what must be mended", {
  needs_python()
  data <- mtcars
  data$hospital <- rep(c("north", "south"), 16)
  data$wt[4:5] <- NA
  page <- tempfile(fileext = ".html")
  found <- fl_check(data, target = "mpg", site = "hospital", page = page)
  expect_equal(found$problems, 1)
  expect_equal(found$findings$column[found$findings$mend], "wt")
  expect_output(print(found), "Table 1")
  expect_true(file.exists(page))
  expect_error(fl_check(1:3, target = "mpg"), "neither a data frame nor the names of files")
})

test_that("columns of a group enter together, with the slopes of a group Lasso", {
  needs_python()
  drawn <- draw("gaussian")
  own <- fit_drawn(drawn, "gaussian", groups = list(c("v1", "v4"), c("v5", "v6")))
  scale <- sqrt(colMeans(sweep(drawn$x, 2, colMeans(drawn$x))^2))
  b <- coef(own)[-1, 1] * scale
  left <- drawn$y - predict(own, drawn$x)
  slopes <- colMeans(scale(drawn$x, scale = scale) * left)
  for (group in list(c("v1", "v4"), c("v5", "v6"), "v2", "v3")) {
    limit <- 0.05 * sqrt(length(group))
    size <- sqrt(sum(b[group]^2))
    if (size > 0) {
      expect_equal(slopes[group], limit * b[group] / size, tolerance = 1e-6, ignore_attr = TRUE)
    } else {
      expect_lte(sqrt(sum(slopes[group]^2)), limit)
    }
  }
  expect_true(all(b[c("v1", "v4")] != 0))
  words <- utils::capture.output(summary(own))
  expect_true(any(grepl("selected together: v1 + v4 (in the model)", words, fixed = TRUE)))
  table <- data.frame(drawn$x, ward = factor(rep(c("a", "b", "c"), 80)), y = drawn$y)
  levels <- coef(fl_fit(y ~ ., data = table, site = drawn$site, lambda = 0.01, groups = "ward"))
  expect_length(unique(levels[grepl("ward", rownames(levels)), 1] == 0), 1)
})
