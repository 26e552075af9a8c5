#' Print and summarise a model
#'
#' @param x,object a model of [fl_fit()] or [fl_cv()]
#' @param digits significant digits
#' @param ... not used
#' @return `x`, or for `summary()` the lines that `fedlasso inspect` prints. `deviance()` is that of the
#'   model's own penalty, as of `glmnet()`; `NA` for Cox models and models that were read from a folder.
#' @export
print.fl_fit <- function(x, digits = 4, ...) {
  cat("\nCall: ", paste(deparse(x$call), collapse = "\n      "), "\n\n", sep = "")
  nonzero <- sum(x$coefficients[names(x$coefficients) != "(Intercept)"] != 0)
  cat(sprintf(
    "%s of %d rows at %s, with %d of %d columns at lambda %s\n", x$kind, x$nobs,
    count_of(nrow(x$sites), "site"), nonzero, length(x$columns), format(x$lambda, digits = digits)
  ))
  cat(sprintf("The model is %s.\n", x$certificate))
  invisible(x)
}

#' @rdname print.fl_fit
#' @export
print.fl_cv <- function(x, digits = 4, ...) {
  cat("\nCall: ", paste(deparse(x$call), collapse = "\n      "), "\n\n", sep = "")
  cat(sprintf("Measure: %s, %d rows at %s\n\n", x$name, x$nobs, count_of(nrow(x$sites), "site")))
  at <- match(c(x$lambda.min, x$lambda.1se), x$lambda)
  shown <- data.frame(
    Lambda = x$lambda[at], Index = at, Measure = x$cvm[at], SE = x$cvsd[at],
    Nonzero = unname(x$nzero)[at], row.names = c("min", "1se")
  )
  print(shown, digits = digits)
  invisible(x)
}

#' @rdname print.fl_fit
#' @export
summary.fl_fit <- function(object, ...) {
  structure(list(text = object$summary), class = "summary.fl_fit")
}

#' @rdname print.fl_fit
#' @export
print.summary.fl_fit <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' @rdname print.fl_fit
#' @export
deviance.fl_fit <- function(object, ...) {
  (1 - object$dev.ratio) * object$nulldev
}

#' @rdname print.fl_fit
#' @export
nobs.fl_fit <- function(object, ...) {
  object$nobs
}

# A number and its noun.
count_of <- function(number, noun) {
  sprintf("%d %s%s", number, noun, if (number == 1) "" else "s")
}

#' @importFrom stats coef deviance nobs predict
NULL
