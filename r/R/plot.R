#' Plot a model as glmnet does
#'
#' For a model of [fl_cv()], `plot()` draws the cross-validation curve as `plot.cv.glmnet()` does:
#' the mean error with one standard error on each side, against the logarithm of lambda, with dotted
#' lines at `lambda.min` and `lambda.1se` and the number of nonzero coefficients on top. With
#' `what = "path"` it draws the coefficients as `plot.glmnet()` does.
#'
#' @param x a model of [fl_cv()]
#' @param what `"cv"` or `"path"`
#' @param xvar horizontal axis of the path: `"norm"`, `"lambda"` or `"dev"`
#' @param label whether to name the columns of the path
#' @param sign.lambda 1, or -1 to draw the largest penalty on the left
#' @param ... passed to [graphics::plot()] or [graphics::matplot()]
#' @return nothing
#' @examplesIf fedlasso::fl_available()
#' cv <- fl_cv(mpg ~ ., data = mtcars, nfolds = 5)
#' plot(cv)
#' plot(cv, "path", xvar = "lambda", label = TRUE)
#' @export
plot.fl_cv <- function(x, what = c("cv", "path"), xvar = c("norm", "lambda", "dev"), label = FALSE,
                       sign.lambda = 1, ...) {
  if (match.arg(what) == "path") {
    return(invisible(plot_path(x, match.arg(xvar), label, ...)))
  }
  across <- sign.lambda * log(x$lambda)
  drawn <- list(
    x = across, y = x$cvm, type = "n", ylim = range(x$cvup, x$cvlo, na.rm = TRUE),
    xlab = if (sign.lambda < 0) expression(-Log(lambda)) else expression(Log(lambda)),
    ylab = sentence(x$name)
  )
  do.call(graphics::plot, utils::modifyList(drawn, list(...)))
  width <- diff(range(across)) / 100
  graphics::segments(across, x$cvlo, across, x$cvup, col = "darkgrey")
  graphics::segments(across - width, x$cvlo, across + width, x$cvlo, col = "darkgrey")
  graphics::segments(across - width, x$cvup, across + width, x$cvup, col = "darkgrey")
  graphics::points(across, x$cvm, pch = 20, col = "red")
  graphics::axis(3, at = across, labels = x$nzero, tick = FALSE, line = 0)
  graphics::abline(v = sign.lambda * log(c(x$lambda.min, x$lambda.1se)), lty = 3)
  invisible()
}

#' @export
plot.fl_fit <- function(x, ...) {
  stop("a model at one penalty has no curve or path to plot; use fl_cv()", call. = FALSE)
}

sentence <- function(text) {
  paste0(toupper(substr(text, 1L, 1L)), substring(text, 2L))
}

plot_path <- function(x, xvar, label, ...) {
  path <- x$path
  beta <- path$coefficients
  used <- rowSums(beta != 0) > 0
  if (!any(used)) {
    stop("every coefficient is zero along the whole path, so there is nothing to draw", call. = FALSE)
  }
  beta <- beta[used, , drop = FALSE]
  df <- colSums(beta != 0)
  across <- switch(xvar, norm = colSums(abs(beta)), lambda = log(path$lambda), dev = path$dev.ratio)
  name <- switch(xvar, norm = "L1 Norm", lambda = "Log Lambda", dev = "Fraction Deviance Explained")
  # The names of columns need room beside the smallest penalty.
  room <- if (label) diff(range(across)) * max(nchar(x$columns[used])) / 60 else 0
  left <- xvar == "lambda"
  drawn <- list(
    x = across, y = t(beta), lty = 1, type = "l", xlab = name, ylab = "Coefficients",
    xlim = range(across) + if (left) c(-room, 0) else c(0, room)
  )
  do.call(graphics::matplot, utils::modifyList(drawn, list(...)))
  ticks <- pretty(across)
  at <- ticks[ticks >= min(across) & ticks <= max(across)]
  graphics::axis(3, at = at, labels = counts_at(at, across, df, left), tick = FALSE)
  if (label) {
    last <- ncol(beta)
    names <- x$columns[used]
    graphics::text(across[last], beta[, last], names, cex = 0.7, pos = if (left) 2 else 4, xpd = TRUE)
  }
}

# Numbers of nonzero coefficients at ticks: between two models that of the one with the smaller
# penalty, which is on the left along lambda.
counts_at <- function(at, across, df, left) {
  order <- order(across)
  f <- if (left) 0 else 1
  stats::approx(across[order], df[order], at, method = "constant", rule = 2, f = f, ties = "ordered")$y
}
