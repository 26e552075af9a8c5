#' @rdname fl_fit
#' @export
fl_cv <- function(x, y = NULL, ..., nfolds = 10) {
  given <- list(...)
  for (name in intersect(names(given), c("lambda", "goal"))) {
    stop(sprintf("fl_cv() chooses the penalty of the pooled Lasso; omit `%s`, or use fl_fit()", name), call. = FALSE)
  }
  if (is.null(given$validation)) {
    given$nfolds <- nfolds
  }
  fit <- do.call(fl_fit, c(list(x, y, goal = "objective"), given), quote = TRUE)
  fit$call <- match.call()
  model <- python_of(fit)
  curve <- ask_r("curve", model)
  path <- ask_r("path", model)
  lambda <- from_bytes(curve$penalties)
  cvm <- from_bytes(curve$mean)
  cvsd <- from_bytes(curve$se)
  coefficients <- matrix(from_bytes(path$coefficients), length(fit$columns))
  cv <- list(
    lambda = lambda,
    cvm = cvm,
    cvsd = cvsd,
    cvup = cvm + cvsd,
    cvlo = cvm - cvsd,
    nzero = stats::setNames(colSums(coefficients != 0), paste0("s", seq_along(lambda) - 1L)),
    name = curve$error,
    lambda.min = curve$min,
    lambda.1se = curve$`1se`,
    path = list(
      lambda = from_bytes(path$penalties),
      intercepts = from_bytes(path$intercepts),
      coefficients = coefficients,
      dev.ratio = from_bytes(path$dev_ratio),
      gap = from_bytes(path$gaps)
    )
  )
  # Stored objects know the whole path.
  fit$python <- keep_python(model)
  structure(c(cv, unclass(fit)[setdiff(names(fit), names(cv))]), class = c("fl_cv", "fl_fit"))
}
