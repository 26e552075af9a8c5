#' Models as tables, with the columns of broom
#'
#' `tidy()` of a model of [fl_fit()] returns one row per term; of [fl_cv()] the cross-validation
#' curve, as broom does for `cv.glmnet`, or with `what = "coefficients"` the terms. `glance()`
#' returns one row per model, and `augment()` the rows of data with their predictions.
#'
#' @param x a model of [fl_fit()] or [fl_cv()]
#' @param what `"curve"` or `"coefficients"`
#' @param s the penalty, as in [coef()][coef.fl_fit]
#' @param exponentiate whether to return odds, rate or hazard ratios
#' @param return_zeros whether to return terms whose coefficient is zero
#' @param data,newdata rows with the columns of the fit
#' @param type.predict `"response"` or `"link"`
#' @param ... for `augment()` passed to `predict()`, such as `newoffset`
#' @return A data frame, as a tibble if that package is installed. With intervals requested in the
#'   fit, `tidy()` has `std.error`, `statistic`, `conf.low`, `conf.high` and `p.value`; they belong to the
#'   estimate without the Lasso's shrinkage, which is in `debiased`.
#' @examplesIf fedlasso::fl_available()
#' model <- fl_fit(mpg ~ ., data = mtcars, lambda = 0.5)
#' tidy(model)
#' glance(model)
#' @importFrom generics tidy
#' @export
tidy.fl_fit <- function(x, s = NULL, exponentiate = FALSE, return_zeros = FALSE, ...) {
  at <- penalties_of(x, s)
  if (length(at) != 1L) {
    stop("`s` has several values; give one", call. = FALSE)
  }
  found <- ask_r("table", python_of(x), at[[1L]], exponentiate)
  numbers <- lapply(found[names(found) != "term"], function(column) {
    values <- from_bytes(column)
    values[is.nan(values)] <- NA
    values
  })
  names <- c(if ("(Intercept)" %in% names(x$coefficients)) "(Intercept)", x$columns)
  rows <- data.frame(term = names, numbers, check.names = FALSE)
  if (!return_zeros) {
    zero <- if (exponentiate) 1 else 0
    inferred <- if (is.null(rows$conf.low)) FALSE else !is.na(rows$conf.low)
    rows <- rows[rows$term == "(Intercept)" | rows$estimate != zero | inferred, ]
  }
  as_table(rows)
}

#' @rdname tidy.fl_fit
#' @export
tidy.fl_cv <- function(x, what = c("curve", "coefficients"), s = "lambda.1se", ...) {
  if (match.arg(what) == "coefficients") {
    return(tidy.fl_fit(x, s, ...))
  }
  as_table(data.frame(
    lambda = x$lambda, estimate = x$cvm, std.error = x$cvsd, conf.low = x$cvlo,
    conf.high = x$cvup, nzero = unname(x$nzero)
  ))
}

#' @rdname tidy.fl_fit
#' @importFrom generics glance
#' @export
glance.fl_fit <- function(x, ...) {
  terms <- x$coefficients[names(x$coefficients) != "(Intercept)"]
  as_table(data.frame(
    lambda = x$lambda, nzero = sum(terms != 0), nulldev = x$nulldev, dev.ratio = x$dev.ratio,
    gap = x$gap, nobs = x$nobs, sites = nrow(x$sites), round_trips = x$round_trips, bytes = x$bytes
  ))
}

#' @rdname tidy.fl_fit
#' @export
glance.fl_cv <- function(x, ...) {
  as_table(data.frame(
    lambda.min = x$lambda.min, lambda.1se = x$lambda.1se, nobs = x$nobs, sites = nrow(x$sites),
    round_trips = x$round_trips, bytes = x$bytes
  ))
}

#' @rdname tidy.fl_fit
#' @importFrom generics augment
#' @export
augment.fl_fit <- function(x, data = NULL, newdata = data, type.predict = c("response", "link"), ...) {
  if (is.null(newdata)) {
    stop("give `data` or `newdata`: a model does not contain its rows", call. = FALSE)
  }
  rows <- as.data.frame(newdata)
  rows$.fitted <- stats::predict(x, newdata, type = match.arg(type.predict), ...)
  as_table(rows)
}

as_table <- function(rows) {
  rownames(rows) <- NULL
  if (requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(rows) else rows
}

#' @export
generics::tidy

#' @export
generics::glance

#' @export
generics::augment
