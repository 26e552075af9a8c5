# Further arguments: those of the Python estimators, and a remedy for those of glmnet.

# What arguments of glmnet and cv.glmnet are here.
of_glmnet <- c(
  type.measure = "errors are mean squared errors, and deviances of other families",
  foldid = "folds are drawn within each site; use `nfolds` and `seed`",
  nlambda = "the penalties follow from the data",
  lambda.min.ratio = "the penalties follow from the data",
  exclude = "use penalty.factor = c(column = Inf)",
  relax = "use fl_fit(goal = \"selection\"), whose model is refitted with less shrinkage",
  gamma = "use fl_fit(goal = \"selection\"), whose model is refitted with less shrinkage",
  thresh = "the accuracy is `tol`",
  maxit = "the accuracy is `tol`",
  type.gaussian = "it has no counterpart",
  type.logistic = "it has no counterpart",
  standardize.response = "only one response is supported",
  type.multinomial = "only two classes are supported",
  alignment = "it has no counterpart",
  grouped = "it has no counterpart",
  parallel = "it has no counterpart",
  trace.it = "it has no counterpart",
  dfmax = "it has no counterpart",
  pmax = "it has no counterpart",
  subset = "give the rows of `data` that you need"
)

# What parameters of Python are called here.
of_python <- c(
  penalty = "`lambda`", l1_ratio = "`alpha`", cv = "`nfolds`", penalty_factors = "`penalty.factor`",
  bounds = "`lower.limits` and `upper.limits`", fit_intercept = "`intercept`", sites = "`site`",
  sample_weight = "`weights`", positive = "the second level of a factor"
)

# Refuse arguments that would have no effect, or another one than in glmnet.
check_arguments <- function(given, family) {
  if (length(given) && (is.null(names(given)) || any(names(given) == ""))) {
    stop("an argument after the first ones has no name; give it one", call. = FALSE)
  }
  known <- unlist(ask_r("parameters", family))
  for (name in names(given)) {
    if (name %in% names(of_python)) {
      stop(sprintf("`%s` is %s in R", name, of_python[[name]]), call. = FALSE)
    }
    if (name %in% names(of_glmnet)) {
      stop(sprintf("`%s` of glmnet is not available: %s", name, of_glmnet[[name]]), call. = FALSE)
    }
    if (!name %in% known) {
      others <- setdiff(known, names(of_python))
      like <- agrep(name, others, value = TRUE)
      remedy <- if (length(like)) sprintf("did you mean `%s`", like[1]) else "see ?fl_fit"
      stop(sprintf("there is no argument `%s` with family = \"%s\"; %s", name, family, remedy), call. = FALSE)
    }
  }
}

# Names of columns, as a list for Python.
column_names <- function(values, name) {
  if (is.null(values)) {
    return(list())
  }
  if (!is.character(values)) {
    stop(sprintf("`%s` is %s; give names of columns", name, deparse(values)[1]), call. = FALSE)
  }
  as.list(values)
}

# Levels by column: factors have theirs in order, other columns named in `categorical` get them sorted.
levels_of <- function(x, categorical) {
  orders <- orders_of(x)
  if (is.list(categorical)) {
    orders[names(categorical)] <- lapply(categorical, function(levels) as.list(as.character(levels)))
    categorical <- NULL
  }
  column_names(categorical, "categorical")
  for (name in setdiff(categorical, names(orders))) {
    if (!name %in% names(x)) {
      stop(sprintf("`categorical` has \"%s\", but no predictor has this name", name), call. = FALSE)
    }
    orders[[name]] <- as.list(as.character(sort(unique(x[[name]]))))
  }
  orders
}
