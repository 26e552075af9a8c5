# Without Python nothing can be tested here; where it must be there, its absence is a failure.
needs_python <- function() {
  if (!nzchar(Sys.getenv("FEDLASSO_R_TESTS"))) {
    skip_if_not(fl_available(), "no Python with fedlasso")
  }
}

needs_glmnet <- function() {
  if (!nzchar(Sys.getenv("FEDLASSO_R_TESTS"))) {
    skip_if_not_installed("glmnet")
  }
}

families <- c("gaussian", "binomial", "poisson", "cox")

# Correlated columns on different scales at three sites, and a response of the family.
draw <- function(family, rows = 240, seed = 1) {
  set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  x <- matrix(rnorm(rows * 6), rows) %*% chol(0.5^abs(outer(1:6, 1:6, "-")))
  x <- sweep(x, 2, c(1, 5, 0.2, 1, 1, 3), "*")
  colnames(x) <- paste0("v", 1:6)
  link <- x[, 1] - 0.1 * x[, 2] + 2 * x[, 3]
  y <- switch(family,
    gaussian = link + rnorm(rows),
    binomial = rbinom(rows, 1, plogis(link)),
    poisson = rpois(rows, exp(link / 2)),
    # Rounded times are tied.
    cox = survival::Surv(round(10 * rexp(rows, exp(link)), 1) + 0.1, rbinom(rows, 1, 0.7))
  )
  if (family == "gaussian") {
    # glmnet's elastic net has the scale of ours for such a response only.
    y <- y / sqrt(mean((y - mean(y))^2))
  }
  list(
    x = x, y = y, site = sample(c("north", "south", "west"), rows, replace = TRUE),
    weights = sample(c(0.5, 1, 2, 3), rows, replace = TRUE), offset = rnorm(rows) / 3
  )
}

# glmnet iterated to rounding error, with each site's own baseline hazard in a Cox model.
exact_glmnet <- function(drawn, family, ..., lambda = 0.05) {
  before <- glmnet::glmnet.control()
  on.exit(glmnet::glmnet.control(epsnr = before$epsnr, mxitnr = before$mxitnr))
  glmnet::glmnet.control(epsnr = 1e-18, mxitnr = 1000)
  y <- if (family == "cox") glmnet::stratifySurv(drawn$y, drawn$site) else drawn$y
  glmnet::glmnet(drawn$x, y, family = family, lambda = lambda, thresh = 1e-20, maxit = 1e7, ...)
}

fit_drawn <- function(drawn, family, ..., lambda = 0.05) {
  extra <- if (family == "cox") list(ties = "breslow") else list()
  do.call(fl_fit, c(
    list(drawn$x, drawn$y, site = drawn$site, family = family, lambda = lambda), list(...), extra
  ))
}

expect_same_model <- function(own, other) {
  expect_identical(rownames(coef(own)), rownames(coef(other)))
  expect_lt(max(abs(coef(own) - coef(other))), 1e-6)
}
