#' Fit one sparse regression to rows that belong to several sites
#'
#' `fl_fit()` fits a Lasso or an elastic net at one penalty, or for a goal. `fl_cv()` chooses the
#' penalty by cross-validation, as `cv.glmnet()` does; the folds are drawn within each site.
#' Linear, logistic, Poisson and Cox regressions are available.
#'
#' For linear models without unpenalised columns, elastic net and bounds, `fl_cv()` has errors at a
#' hundred penalties. For all others it searches for the best penalty and the one within one standard
#' error, in few exchanges with the sites, so its curve has fewer points. Coefficients at a penalty
#' are exact in both cases.
#'
#' @section Scale of lambda:
#' Columns are standardised by their standard deviations over all rows, with divisor n, as in
#' glmnet; the penalty refers to these columns, and coefficients are per unit of the original ones.
#' At the same `lambda` the coefficients are those of glmnet with the same options. There are two
#' differences in what options mean:
#' * `alpha < 1` with family `"gaussian"`: glmnet divides `y` by its standard deviation first, so
#'   its ridge part is the one of fedlasso for such a `y` only.
#' * Cox: each site has its own baseline hazard (in glmnet `stratifySurv()` with one stratum per
#'   site), and ties are treated by Efron's method; glmnet has Breslow's (`ties = "breslow"`).
#'
#' @section Data frames:
#' Columns of a data frame, and formulas whose terms are columns (`y ~ .`, `y ~ age + sex`), are
#' read by the same rules as the files of `fedlasso fit`, so both give the same model. Text becomes
#' one column per level except the first; levels with fewer than `min_level` rows at every site are
#' pooled; columns that identify the rows are left out. A factor keeps the order of its levels: the
#' first one is the reference. Missing values are refused, or replaced by the mean over all sites
#' with `missing = "mean"`.
#'
#' Formulas with anything else (`age * sex`, `log(dose)`, `splines::ns(bmi, 3)`) are expanded by R's
#' own [stats::model.matrix()]. It sees the rows of all sites at once, so it needs them in one
#' process, which `fl_fit()` and `fl_cv()` have.
#'
#' @param x a numeric matrix, a sparse matrix, a data frame, or a formula
#' @param y the response: numbers, two classes (the second level of a factor is 1), counts, or
#'   `survival::Surv(time, event)`; with a formula omit it
#' @param data a data frame, with a formula
#' @param site the site of each row: a vector, or the name of a column; one site by default
#' @param family `"gaussian"`, `"binomial"`, `"poisson"` or `"cox"`; a formula with a `Surv` response
#'   has `"cox"` by default
#' @param lambda the penalty; by default it is chosen for the goal
#' @param alpha fraction of the L1 penalty; 1 is the Lasso
#' @param weights,offset weights of the rows, and numbers added to the linear predictor: vectors, or
#'   names of columns
#' @param clusters labels of rows that depend on each other, such as the patient
#' @param penalty.factor a factor of the penalty for each column: a vector, or a named one for some
#'   of them, the others being 1. As in glmnet, factors are rescaled to a mean of 1, and a factor of
#'   `Inf` excludes the column.
#' @param keep names of columns that are never penalised; the other columns keep their penalty
#' @param lower.limits,upper.limits bounds of the coefficients: one for all columns, one each, or
#'   named
#' @param standardize,intercept whether to scale the columns, and to fit an intercept
#' @param goal `"prediction"` (the default), `"selection"`, `"objective"` or `"discoveries"`, the
#'   purpose of the model; with `lambda` it is the pooled Lasso
#' @param intervals names of columns that get confidence intervals, or `"selected"`
#' @param missing `"refuse"`, or `"mean"` to replace missing values
#' @param nfolds number of folds
#' @param seed of the folds
#' @param ... further parameters of the Python estimators, such as `site_effects = TRUE`,
#'   `ties = "breslow"`, `fdr`, `level`, `na`, `min_level`, `round_trips`, `categorical = "stage"`
#'   for numbers that are codes, or `groups = list("ward", c("bmi", "bmi2"))`: the levels of a
#'   factor, or some columns, enter or leave the model together (group Lasso). Arguments of glmnet
#'   that are not available are refused
#' @return An object of class `fl_fit`, for `fl_cv()` also of class `fl_cv`. The latter has glmnet's
#'   elements `lambda`, `cvm`, `cvsd`, `cvup`, `cvlo`, `nzero`, `lambda.min` and `lambda.1se`. It can
#'   be stored by [saveRDS()]: without records, so that only penalties of the path can be used then.
#' @examplesIf fedlasso::fl_available()
#' hospital <- rep(c("north", "south"), each = 16)
#' cv <- fl_cv(mpg ~ ., data = mtcars, site = hospital, nfolds = 5)
#' cv
#' coef(cv, s = "lambda.1se")
#' predict(cv, mtcars[1:3, ], s = "lambda.min")
#' @export
fl_fit <- function(x, y = NULL, data = NULL, site = NULL, family = NULL, lambda = NULL, alpha = 1,
                   weights = NULL, offset = NULL, clusters = NULL, penalty.factor = NULL,
                   keep = NULL, lower.limits = -Inf, upper.limits = Inf, standardize = TRUE,
                   intercept = TRUE, goal = NULL, intervals = NULL, missing = c("refuse", "mean"),
                   nfolds = NULL, seed = 0, ...) {
  if (length(lambda) > 1L) {
    stop("`lambda` has several values; fl_fit() takes one, fl_cv() chooses among many", call. = FALSE)
  }
  family <- find_family(family, x, y)
  given <- list(...)
  check_arguments(given, family)
  roles <- list(site = site, weights = weights, offset = offset, clusters = clusters)
  input <- read_input(x, y, data, roles, family)
  options <- c(
    list(
      goal = goal, penalty = lambda, l1_ratio = alpha,
      intervals = column_names(intervals, "intervals"), standardize = standardize, missing = match.arg(missing),
      cv = whole(nfolds, "nfolds"), seed = whole(seed, "seed")
    ),
    name_limits(input, lower.limits, upper.limits, penalty.factor, keep),
    if (length(orders <- levels_of(input$x, given$categorical))) list(categorical = orders),
    if (family != "cox") list(fit_intercept = intercept),
    given[names(given) != "categorical"]
  )
  for (name in intersect(names(options), c("round_trips", "uploads", "min_level", "epochs"))) {
    options[[name]] <- whole(options[[name]], name)
  }
  for (name in intersect(names(options), c("na", "groups"))) {
    options[[name]] <- as.list(options[[name]])
  }
  response <- input$response[intersect(names(input$response), c("values", "classes", "time", "event"))]
  model <- ask("fit", family, input$rows, response, pass_roles(input$roles), options)
  new_fit(model, match.call(), family, input, intercept)
}

find_family <- function(family, x, y) {
  if (is.null(family)) {
    surv <- inherits(y, "Surv") ||
      (inherits(x, "formula") && length(x) == 3L && is.call(x[[2L]]) && is_surv(x[[2L]][[1L]]))
    return(if (surv) "cox" else "gaussian")
  }
  if (is.function(family)) {
    family <- family()
  }
  if (inherits(family, "family")) {
    family <- family$family
  }
  known <- c("gaussian", "binomial", "poisson", "cox")
  at <- if (is.character(family) && length(family) == 1L) pmatch(family, known) else NA
  if (is.na(at)) {
    listed <- paste0("\"", known, "\"", collapse = ", ")
    stop(sprintf("`family` is %s; use one of %s", deparse(family)[1], listed), call. = FALSE)
  }
  known[at]
}

is_surv <- function(called) {
  identical(called, quote(Surv)) || identical(called, quote(survival::Surv))
}

whole <- function(number, name) {
  if (is.null(number)) {
    return(NULL)
  }
  if (!is.numeric(number) || length(number) != 1L || is.na(number) || number != round(number)) {
    stop(sprintf("`%s` is %s; give a whole number", name, deparse(number)[1]), call. = FALSE)
  }
  as.integer(number)
}

# Bounds and factors of columns by name, and only where they differ from the default.
name_limits <- function(input, lower, upper, factors, keep) {
  lower <- per_column(lower, -Inf, input$names, "lower.limits")
  upper <- per_column(upper, Inf, input$names, "upper.limits")
  bounded <- union(names(lower)[lower > -Inf], names(upper)[upper < Inf])
  found <- list()
  if (length(bounded)) {
    found$bounds <- lapply(stats::setNames(nm = bounded), function(name) {
      list(finite(lower[name]), finite(upper[name]))
    })
  }
  found$keep <- column_names(keep, "keep")
  if (!is.null(factors)) {
    if (!is.null(keep)) {
      stop("`keep` and `penalty.factor` were both given; a factor of 0 keeps a column", call. = FALSE)
    }
    factors <- per_column(factors, 1, input$names, "penalty.factor")
    if (any(factors < 0) || all(factors %in% c(0, Inf))) {
      stop("`penalty.factor` must be zero or more, and positive for some column", call. = FALSE)
    }
    # As in glmnet: an excluded column counts as one with factor 1.
    used <- is.finite(factors)
    factors[used] <- factors[used] * length(factors) / (sum(factors[used]) + sum(!used))
    found$keep <- as.list(names(factors)[factors == 0])
    found$penalty_factors <- as.list(factors[used & factors != 1 & factors != 0])
    found$bounds[names(factors)[!used]] <- rep(list(list(0, 0)), sum(!used))
  }
  found
}

finite <- function(end) {
  end <- unname(end)
  if (is.na(end) || is.infinite(end)) NULL else end
}

per_column <- function(values, default, names, what) {
  if (anyNA(values) || !is.numeric(values)) {
    stop(sprintf("`%s` must be numbers", what), call. = FALSE)
  }
  if (!is.null(names(values))) {
    all <- c(values, stats::setNames(rep(default, length(names)), names))
    return(all[unique(c(names, names(values)))])
  }
  if (!length(values) %in% c(1L, length(names))) {
    stop(
      sprintf("`%s` has %d values for %d columns; give one each, or name them", what, length(values), length(names)),
      call. = FALSE
    )
  }
  stats::setNames(rep_len(values, length(names)), names)
}

# The object of a fitted model in Python.
new_fit <- function(model, call, family, input = NULL, intercept = TRUE) {
  facts <- ask_r("describe", model)
  # Matrices without names in Python have those of R.
  columns <- as.character(if (is.null(input) || is.data.frame(input$x)) facts$columns else input$names)
  has_intercept <- family != "cox"
  coefficients <- stats::setNames(from_bytes(facts$coefficients), columns)
  fit <- list(
    call = call,
    family = family,
    lambda = facts$lambda,
    alpha = facts$alpha,
    coefficients = c(if (has_intercept) c("(Intercept)" = facts$intercept), coefficients),
    columns = columns,
    kind = facts$kind,
    nobs = sum(as.numeric(facts$rows)),
    sites = data.frame(site = as.character(facts$sites), rows = as.numeric(facts$rows)),
    gap = facts$gap,
    certificate = facts$certificate,
    status = facts$status,
    bytes = facts$bytes,
    round_trips = facts$round_trips,
    summary = facts$summary,
    classes = if (is.null(input)) unlist(facts$classes) else input$response$levels,
    target = input$target,
    terms = input$terms,
    reads = if (is.null(input) || is.data.frame(input$x)) as.character(facts$reads),
    has_offset = if (is.null(input)) facts$offset else !is.null(input$roles$offset),
    nulldev = NA_real_,
    dev.ratio = NA_real_,
    python = keep_python(model)
  )
  if (!is.null(input) && family != "cox") {
    offset <- if (fit$has_offset) to_bytes(input$roles$offset)
    link <- from_bytes(ask_r("score", model, input$rows, NULL, offset))
    fit$nulldev <- null_deviance(input, family, intercept)
    fit$dev.ratio <- 1 - deviance_of(input, family, link) / fit$nulldev
  }
  structure(fit, class = "fl_fit")
}

# The model in Python, and its bytes: a session that loads a stored object makes it anew.
keep_python <- function(model) {
  kept <- new.env(parent = emptyenv())
  kept$model <- model
  kept$bytes <- reticulate::py_to_r(python_side()$store(model))
  kept
}

python_of <- function(object) {
  kept <- object$python
  if (is.null(kept$model) || reticulate::py_is_null_xptr(kept$model)) {
    kept$model <- python_side()$restore(kept$bytes)
  }
  kept$model
}

# Deviance of linear predictors, and of the model of intercept and offset alone. The partial
# likelihood of a Cox model is a matter of the sites, so R has none.
deviance_of <- function(input, family, link) {
  family <- switch(family,
    gaussian = stats::gaussian(), binomial = stats::binomial(), poisson = stats::poisson()
  )
  y <- input$response$y
  weights <- if (is.null(input$roles$weights)) rep(1, length(y)) else input$roles$weights
  sum(family$dev.resids(y, family$linkinv(link), weights))
}

null_deviance <- function(input, family, intercept) {
  y <- input$response$y
  if (family == "cox") {
    return(NA_real_)
  }
  offset <- input$roles$offset
  link <- if (is.null(offset)) rep(0, length(y)) else offset
  if (intercept) {
    own <- switch(family,
      gaussian = stats::gaussian(), binomial = stats::quasibinomial(), poisson = stats::poisson()
    )
    ones <- cbind(rep(1, length(y)))
    empty <- stats::glm.fit(ones, y, weights = input$roles$weights, offset = offset, family = own)
    link <- empty$linear.predictors
  }
  deviance_of(input, family, link)
}
