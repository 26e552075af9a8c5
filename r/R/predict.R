#' Coefficients and predictions at a penalty
#'
#' @param object a model of [fl_fit()], [fl_cv()], [fl_read()] or [fl_federation()]
#' @param s the penalty: `"lambda.1se"` or `"lambda.min"`, one or more numbers, or `NULL` for the
#'   model's own. For a model of `fl_cv()` the default is `"lambda.1se"`, as in glmnet. A number
#'   that is not on the path is fitted exactly, as long as the session that made the model lasts.
#' @param newx,newdata new rows: a matrix or a data frame with the columns of the fit
#' @param type `"link"` for linear predictors, `"response"` for means, probabilities, rates or
#'   relative hazards, `"class"` for the more probable class, `"coefficients"`, or `"nonzero"` for
#'   the names of the columns with nonzero coefficients
#' @param newoffset the offset of each new row, if the model has one
#' @param ... not used
#' @details
#' Linear predictors of Cox models are relative to a row at the mean of every column, as those of
#' `survival::coxph()`; those of glmnet are relative to a row of zeros.
#' @return `coef()` returns a sparse matrix with one column per penalty, as in glmnet. `predict()`
#'   returns a vector, or a matrix with one column per penalty if there are several.
#' @examplesIf fedlasso::fl_available()
#' hospital <- rep(c("north", "south"), each = 16)
#' model <- fl_fit(mpg ~ ., data = mtcars, site = hospital, lambda = 0.5)
#' coef(model)
#' predict(model, mtcars[1:3, ])
#' @export
coef.fl_fit <- function(object, s = NULL, ...) {
  found <- lapply(penalties_of(object, s), model_at, object = object)
  names <- names(object$coefficients)
  values <- vapply(found, function(own) {
    c(if (names[1] == "(Intercept)") own$intercept, own$coefficients)
  }, numeric(length(names)))
  labels <- if (is.character(s)) s else paste0("s", seq_along(found))
  values <- matrix(values, length(names), dimnames = list(names, labels))
  methods::as(methods::as(values, "CsparseMatrix"), "generalMatrix")
}

#' @rdname coef.fl_fit
#' @export
coef.fl_cv <- function(object, s = c("lambda.1se", "lambda.min"), ...) {
  coef.fl_fit(object, default_penalty(s))
}

#' @rdname coef.fl_fit
#' @export
predict.fl_fit <- function(object, newx, s = NULL,
                           type = c("link", "response", "class", "coefficients", "nonzero"),
                           newoffset = NULL, newdata = newx, ...) {
  type <- match.arg(type)
  if (type == "coefficients") {
    return(coef.fl_fit(object, s))
  }
  if (type == "nonzero") {
    own <- coef.fl_fit(object, s)
    own <- own[rownames(own) != "(Intercept)", , drop = FALSE]
    names <- lapply(seq_len(ncol(own)), function(k) rownames(own)[own[, k] != 0])
    return(if (length(names) == 1L) names[[1L]] else stats::setNames(names, colnames(own)))
  }
  if (missing(newx) && missing(newdata)) {
    stop("`newx` is missing; give the rows to predict", call. = FALSE)
  }
  if (type == "class" && object$family != "binomial") {
    stop("type = \"class\" is for family = \"binomial\"", call. = FALSE)
  }
  rows <- new_rows(object, newdata)
  newoffset <- new_offset(object, newdata, newoffset)
  penalties <- penalties_of(object, s)
  links <- lapply(penalties, function(at) {
    from_bytes(ask_r("score", python_of(object), rows, at, newoffset))
  })
  links <- lapply(links, transform_link, object = object, type = type)
  if (length(links) == 1L) {
    return(links[[1L]])
  }
  labels <- if (is.character(s)) s else paste0("s", seq_along(links))
  matrix(unlist(links), ncol = length(links), dimnames = list(NULL, labels))
}

#' @rdname coef.fl_fit
#' @export
predict.fl_cv <- function(object, newx, s = c("lambda.1se", "lambda.min"),
                          type = c("link", "response", "class", "coefficients", "nonzero"),
                          newoffset = NULL, newdata = newx, ...) {
  predict.fl_fit(object, newdata, default_penalty(s), match.arg(type), newoffset)
}

# As in glmnet, the first of the two is the default.
default_penalty <- function(s) {
  if (identical(s, c("lambda.1se", "lambda.min"))) s[1] else s
}

# One entry per penalty: a number, a name that Python knows, or NULL for the model's own.
penalties_of <- function(object, s) {
  if (is.null(s)) {
    return(list(NULL))
  }
  if (is.character(s) && !inherits(object, "fl_cv")) {
    stop(sprintf("`s` is \"%s\", but only models of fl_cv() have it; give a number", s[1]), call. = FALSE)
  }
  lapply(as.list(s), function(own) {
    if (is.character(own)) {
      if (!own %in% c("lambda.min", "lambda.1se")) {
        stop(sprintf("`s` is \"%s\"; use \"lambda.min\", \"lambda.1se\" or a number", own), call. = FALSE)
      }
      return(object[[own]])
    }
    if (!is.numeric(own) || is.na(own) || own < 0) {
      stop("`s` must be zero or more", call. = FALSE)
    }
    as.double(own)
  })
}

model_at <- function(object, at) {
  known <- object$path
  on <- if (is.null(known) || is.null(at)) integer() else which(abs(known$lambda / at - 1) < 1e-12)
  if (length(on)) {
    return(list(
      intercept = known$intercepts[on[1]], coefficients = known$coefficients[, on[1]],
      lambda = at, gap = known$gap[on[1]]
    ))
  }
  own <- ask_r("model_at", python_of(object), at)
  own$coefficients <- from_bytes(own$coefficients)
  own
}

new_rows <- function(object, newdata) {
  if (!is.null(object$terms)) {
    if (!is.data.frame(newdata)) {
      stop("the model has a formula; give a data frame", call. = FALSE)
    }
    kept <- object$terms
    newdata <- build_matrix(kept$terms, newdata, kept$levels, kept$contrasts)$x
  }
  if (!is.data.frame(newdata)) {
    if (is.null(dim(newdata))) {
      newdata <- matrix(newdata, nrow = 1L, dimnames = list(NULL, names(newdata)))
    }
    if (all(object$columns %in% colnames(newdata))) {
      newdata <- newdata[, object$columns, drop = FALSE]
    }
    if (ncol(newdata) != length(object$columns)) {
      stop(
        sprintf("`newx` has %d columns, but the model has %d", ncol(newdata), length(object$columns)),
        call. = FALSE
      )
    }
    return(read_rows(newdata, object$columns))
  }
  reads <- if (is.null(object$reads)) object$columns else object$reads
  lacking <- setdiff(reads, names(newdata))
  if (length(lacking)) {
    stop(sprintf("the new rows lack the column \"%s\" of the model", lacking[1]), call. = FALSE)
  }
  newdata <- newdata[reads]
  read_rows(if (is.null(object$reads)) as.matrix(newdata) else newdata)
}

new_offset <- function(object, newdata, newoffset) {
  if (is.null(newoffset)) {
    if (object$has_offset) {
      stop("the model has an offset; give that of the new rows as `newoffset`", call. = FALSE)
    }
    return(NULL)
  }
  if (is.character(newoffset) && length(newoffset) == 1L && newoffset %in% names(newdata)) {
    newoffset <- newdata[[newoffset]]
  }
  to_bytes(newoffset)
}

transform_link <- function(link, object, type) {
  if (type == "link") {
    return(link)
  }
  if (type == "class") {
    classes <- if (is.null(object$classes)) c("0", "1") else object$classes
    return(classes[1L + (link > 0)])
  }
  switch(object$family, gaussian = link, binomial = stats::plogis(link), poisson = , cox = exp(link))
}
