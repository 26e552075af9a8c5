#' A model for tools that expect one of glmnet
#'
#' `as_glmnet()` returns an object with the elements and classes of `glmnet()`, or for a model of
#' [fl_cv()] of `cv.glmnet()`, so that `coef()`, `predict()`, `plot()`, `print()` and `broom::tidy()`
#' of glmnet, and packages that build on it, accept it. It contains no records.
#'
#' @param object a model of [fl_fit()] or [fl_cv()]
#' @param ... not used
#' @return an object of class `glmnet` (`elnet`, `lognet`, `fishnet` or `coxnet`), or `cv.glmnet`
#' @examplesIf fedlasso::fl_available() && requireNamespace("glmnet", quietly = TRUE)
#' x <- as.matrix(mtcars[, -1])
#' cv <- as_glmnet(fl_cv(x, mtcars$mpg, nfolds = 5))
#' library(glmnet)
#' predict(cv, x[1:3, ], s = "lambda.min")
#' @export
as_glmnet <- function(object, ...) {
  UseMethod("as_glmnet")
}

#' @rdname as_glmnet
#' @export
as_glmnet.fl_fit <- function(object, ...) {
  own <- model_at(object, NULL)
  path <- list(
    lambda = own$lambda, intercepts = own$intercept, coefficients = cbind(own$coefficients),
    dev.ratio = object$dev.ratio
  )
  to_glmnet(object, path)
}

#' @rdname as_glmnet
#' @export
as_glmnet.fl_cv <- function(object, ...) {
  names <- c("lambda", "cvm", "cvsd", "cvup", "cvlo", "nzero", "call")
  index <- match(c(object$lambda.min, object$lambda.1se), object$lambda)
  measure <- if (object$family == "gaussian") c(mse = "Mean-Squared Error") else c(deviance = object$name)
  structure(
    c(
      unclass(object)[names],
      list(
        name = measure, glmnet.fit = to_glmnet(object, object$path),
        lambda.min = object$lambda.min, lambda.1se = object$lambda.1se,
        index = matrix(index, 2L, dimnames = list(c("min", "1se"), "Lambda"))
      )
    ),
    class = "cv.glmnet"
  )
}

to_glmnet <- function(object, path) {
  steps <- paste0("s", seq_along(path$lambda) - 1L)
  beta <- path$coefficients
  dimnames(beta) <- list(object$columns, steps)
  beta <- methods::as(methods::as(beta, "CsparseMatrix"), "generalMatrix")
  kind <- switch(object$family, gaussian = "elnet", binomial = "lognet", poisson = "fishnet", cox = "coxnet")
  found <- list(
    call = object$call,
    a0 = if (object$family != "cox") stats::setNames(path$intercepts, steps),
    beta = beta,
    df = unname(Matrix::colSums(beta != 0)),
    dim = dim(beta),
    lambda = path$lambda,
    dev.ratio = path$dev.ratio,
    nulldev = object$nulldev,
    npasses = object$round_trips,
    jerr = 0L,
    offset = object$has_offset,
    classnames = if (object$family == "binomial") if (is.null(object$classes)) c("0", "1") else object$classes,
    nobs = object$nobs
  )
  structure(found[!vapply(found, is.null, NA)], class = c(kind, "glmnet"))
}
