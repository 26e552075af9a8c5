# Data of R as what Python reads: matrices, columns of data frames, responses and labels.

# A response, predictors and the roles of rows, from a formula or from x and y.
read_input <- function(x, y, data, roles, family) {
  if (inherits(x, "formula")) {
    if (is.null(data)) {
      data <- y
    }
    if (!is.data.frame(data)) {
      stop("a formula needs `data`, a data frame", call. = FALSE)
    }
    return(read_formula(x, data, roles, family))
  }
  if (is.null(dim(x))) {
    x <- cbind(V1 = x)
  }
  if (is.null(y)) {
    stop("`y` is missing; give a response, or a formula and `data`", call. = FALSE)
  }
  roles <- read_roles(roles, if (is.data.frame(x)) x, NROW(x))
  x <- without(x, roles$columns)
  if (NROW(y) != NROW(x)) {
    stop(sprintf("`y` has %d values for %d rows of `x`; give one per row", NROW(y), NROW(x)), call. = FALSE)
  }
  response <- read_response(y, family)
  list(
    x = x, rows = read_rows(x), response = response, roles = roles$values, names = names_of(x),
    target = "y", terms = NULL
  )
}

# Columns of predictors that are named as they are go to Python, which encodes them as it does those
# of files. Anything else in a formula is a matter of R's own model matrix.
read_formula <- function(formula, data, roles, family) {
  roles <- read_roles(roles, data, nrow(data))
  data <- without(data, roles$columns)
  terms <- stats::terms(formula, data = data)
  if (!is.null(attr(terms, "offset"))) {
    stop("give the offset as `offset`, not in the formula", call. = FALSE)
  }
  if (attr(terms, "response") == 0L) {
    stop("the formula has no response", call. = FALSE)
  }
  if (attr(terms, "intercept") == 0L) {
    stop("omit the intercept by intercept = FALSE, not in the formula", call. = FALSE)
  }
  y <- eval(formula[[2L]], data, environment(formula))
  response <- read_response(y, family)
  labels <- sub("^`(.*)`$", "\\1", attr(terms, "term.labels"))
  plain <- all(labels %in% names(data))
  kept <- NULL
  if (plain) {
    x <- data[labels]
  } else {
    built <- build_matrix(stats::delete.response(terms), data)
    x <- built$x
    kept <- built[c("terms", "levels", "contrasts")]
  }
  list(
    x = x, rows = read_rows(x), response = response, roles = roles$values, names = names_of(x),
    target = paste(all.vars(formula[[2L]]), collapse = " "), terms = kept
  )
}

build_matrix <- function(terms, data, levels = NULL, contrasts = NULL) {
  frame <- stats::model.frame(terms, data, na.action = stats::na.pass, xlev = levels)
  x <- stats::model.matrix(attr(frame, "terms"), frame, contrasts.arg = contrasts)
  list(
    x = x[, colnames(x) != "(Intercept)", drop = FALSE],
    terms = attr(frame, "terms"),
    levels = stats::.getXlevels(attr(frame, "terms"), frame),
    contrasts = attr(x, "contrasts")
  )
}

# Weights, offset, sites and clusters: a value per row, or the name of a column.
read_roles <- function(roles, data, rows) {
  columns <- character()
  values <- list()
  for (name in names(roles)) {
    own <- roles[[name]]
    if (is.null(own)) {
      next
    }
    if (is.character(own) && length(own) == 1L && rows != 1L) {
      if (!own %in% names(data)) {
        stop(sprintf("`%s` is \"%s\", but no column has this name", name, own), call. = FALSE)
      }
      columns <- c(columns, own)
      own <- data[[own]]
    }
    if (length(own) != rows) {
      stop(
        sprintf("`%s` has %d values for %d rows; give one per row", name, length(own), rows),
        call. = FALSE
      )
    }
    if (anyNA(own)) {
      stop(
        sprintf("`%s` is missing in %s; fill it, or remove those rows", name, count_of(sum(is.na(own)), "row")),
        call. = FALSE
      )
    }
    values[[name]] <- own
  }
  list(values = values, columns = columns)
}

without <- function(x, columns) {
  if (length(columns)) x[setdiff(names(x), columns)] else x
}

names_of <- function(x) {
  if (is.data.frame(x)) {
    return(names(x))
  }
  if (is.null(colnames(x))) paste0("V", seq_len(ncol(x))) else colnames(x)
}

# Predictors in the form that Python reads.
read_rows <- function(x, names = names_of(x)) {
  if (is.data.frame(x)) {
    return(list(table = stats::setNames(Map(read_column, x, names(x)), names(x))))
  }
  if (inherits(x, "sparseMatrix")) {
    x <- methods::as(methods::as(x, "CsparseMatrix"), "generalMatrix")
    values <- if (inherits(x, "nsparseMatrix")) rep(1, length(x@i)) else x@x
    return(list(
      values = to_bytes(values), index = to_bytes(x@i), pointers = to_bytes(x@p),
      rows = nrow(x), columns = as.list(names)
    ))
  }
  x <- as.matrix(x)
  if (!is.numeric(x) && !is.logical(x)) {
    stop("`x` is not numeric; give a data frame if it has text or factors", call. = FALSE)
  }
  list(values = to_bytes(x), rows = nrow(x), columns = as.list(names))
}

# A column of a data frame: numbers as bytes, and texts as codes with their levels.
read_column <- function(column, name) {
  if (is.factor(column)) {
    return(list(kind = "text", values = to_bytes(as.integer(column) - 1L), levels = as.list(levels(column))))
  }
  if (is.character(column)) {
    levels <- unique(column[!is.na(column)])
    return(list(kind = "text", values = to_bytes(match(column, levels) - 1L), levels = as.list(levels)))
  }
  if (is.object(column) && !inherits(column, c("integer64", "difftime", "AsIs")) || !is.atomic(column) ||
      is.complex(column) || !is.null(dim(column))) {
    stop(
      sprintf("column \"%s\" is a %s; convert it to numbers, text or a factor", name, class(column)[1]),
      call. = FALSE
    )
  }
  list(kind = typeof(column), values = to_bytes(column), levels = NULL)
}

# The levels of factors in their order, the first being the reference.
orders_of <- function(x) {
  if (!is.data.frame(x)) {
    return(list())
  }
  lapply(x[vapply(x, is.factor, NA)], function(column) as.list(levels(column)))
}

read_response <- function(y, family) {
  if (family == "cox") {
    return(read_survival(y))
  }
  if (inherits(y, "Surv")) {
    stop(sprintf("the response is a Surv object; use family = \"cox\", not \"%s\"", family), call. = FALSE)
  }
  if (!is.null(dim(y)) && NCOL(y) == 1L) {
    y <- y[, 1L]
  }
  if (!is.null(dim(y))) {
    stop("the response has several columns; give one value per row", call. = FALSE)
  }
  if (anyNA(y)) {
    stop(sprintf("the response is missing in %s; remove them", count_of(sum(is.na(y)), "row")), call. = FALSE)
  }
  if (family == "binomial") {
    return(read_classes(y))
  }
  if (!is.numeric(y)) {
    stop(sprintf("the response is not numeric, but family = \"%s\" needs numbers", family), call. = FALSE)
  }
  list(values = to_bytes(y), classes = NULL, y = as.double(y))
}

# Two classes; the second level is 1, as in glm.
read_classes <- function(y) {
  classes <- droplevels(as.factor(y))
  if (nlevels(classes) != 2L) {
    stop(
      sprintf("family = \"binomial\" needs two classes, but the response has %d", nlevels(classes)),
      call. = FALSE
    )
  }
  codes <- as.integer(classes) - 1L
  # Python orders classes by their text: only if that is the order here too are texts passed on.
  texts <- levels(classes)
  sorted <- is.na(suppressWarnings(as.numeric(texts[1]))) && identical(sort(texts, method = "radix"), texts)
  list(
    values = to_bytes(codes), classes = if (sorted) as.list(texts), y = as.double(codes),
    levels = texts
  )
}

read_survival <- function(y) {
  if (inherits(y, "Surv")) {
    if (attr(y, "type") != "right") {
      stop(sprintf("survival times are censored by \"%s\"; only \"right\" is supported", attr(y, "type")), call. = FALSE)
    }
    y <- unclass(y)
  }
  y <- as.matrix(y)
  if (ncol(y) != 2L || !all(c("time", "status") %in% colnames(y))) {
    stop("with family = \"cox\" the response is Surv(time, event), or a matrix with the columns time and status", call. = FALSE)
  }
  list(time = to_bytes(y[, "time"]), event = to_bytes(y[, "status"]), y = y[, c("time", "status")])
}

# Roles under their names in Python.
pass_roles <- function(values) {
  spelled <- c(site = "sites", weights = "sample_weight", offset = "offset", clusters = "clusters")
  own <- stats::setNames(values, spelled[names(values)])
  lapply(stats::setNames(nm = names(own)), function(name) {
    if (name %in% c("sample_weight", "offset")) {
      return(to_bytes(own[[name]]))
    }
    labels <- as.character(own[[name]])
    levels <- unique(labels)
    list(to_bytes(match(labels, levels) - 1L), as.list(levels))
  })
}
