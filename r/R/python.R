# The Python package behind the functions: found once per session, called through one function.

found <- new.env(parent = emptyenv())

#' The Python in which fedlasso is found
#'
#' The first of these that exists is used: the option `fedlasso.python`, the environment variable
#' `RETICULATE_PYTHON`, the active virtual or conda environment, the `.venv` of a checkout of
#' fedlasso that contains the working directory, and the Python of the command `fedlasso`. If
#' reticulate has already started a Python in this session, that one is used.
#'
#' @return `fl_python()` returns the path of the Python, `fl_available()` whether it works.
#' @examples
#' fl_available()
#' @export
fl_python <- function() {
  if (reticulate::py_available(initialize = FALSE)) {
    return(reticulate::py_config()$python)
  }
  chosen <- c(
    getOption("fedlasso.python", ""),
    Sys.getenv("RETICULATE_PYTHON"),
    in_environment(Sys.getenv("VIRTUAL_ENV")),
    in_environment(Sys.getenv("CONDA_PREFIX")),
    in_checkout(getwd()),
    of_command(Sys.which("fedlasso")),
    Sys.which("python3"),
    Sys.which("python")
  )
  chosen <- unname(chosen[nzchar(chosen)])
  if (!length(chosen) || !file.exists(chosen[1])) {
    stop(no_python(if (length(chosen)) chosen[1]), call. = FALSE)
  }
  chosen[1]
}

#' @rdname fl_python
#' @export
fl_available <- function() {
  tryCatch({
    python_side()
    TRUE
  }, error = function(error) FALSE)
}

# Python of an environment's folder, or nothing.
in_environment <- function(folder) {
  if (!nzchar(folder)) {
    return("")
  }
  own <- file.path(folder, c("bin/python", "Scripts/python.exe", "python.exe"))
  c(own[file.exists(own)], "")[1]
}

in_checkout <- function(folder) {
  repeat {
    if (file.exists(file.path(folder, "src", "fedlasso", "__init__.py"))) {
      return(in_environment(file.path(folder, ".venv")))
    }
    if (dirname(folder) == folder) {
      return("")
    }
    folder <- dirname(folder)
  }
}

# The first line of the command names its Python.
of_command <- function(command) {
  if (!nzchar(command) || .Platform$OS.type != "unix") {
    return("")
  }
  first <- suppressWarnings(readLines(command, n = 1L, skipNul = TRUE))
  python <- sub("^#! *", "", first)
  if (grepl("^#!", first) && file.exists(python)) python else ""
}

no_python <- function(python = NULL) {
  if (is.null(python)) {
    return("No Python is found; install Python 3.11 or newer and run: pip install 'fedlasso[fit]'")
  }
  sprintf("There is no Python at %s; correct RETICULATE_PYTHON or options(fedlasso.python = )", python)
}

no_package <- function(python) {
  sprintf("%s has no package fedlasso; install it: %s -m pip install 'fedlasso[fit]'", python, python)
}

broken_package <- function(python, error) {
  why <- sub("^[A-Za-z]+: ", "", strsplit(conditionMessage(error), "\n")[[1]][1])
  sprintf("fedlasso cannot be used (%s); install it anew: %s -m pip install -U 'fedlasso[fit]'", why, python)
}

# The Python functions of this package.
python_side <- function() {
  if (is.null(found$side)) {
    python <- fl_python()
    start_python(python)
    if (!reticulate::py_module_available("fedlasso")) {
      stop(no_package(python), call. = FALSE)
    }
    folder <- system.file("python", package = "fedlasso")
    found$side <- tryCatch(
      reticulate::import_from_path("fedlasso_r", folder, convert = FALSE),
      error = function(error) stop(broken_package(python, error), call. = FALSE)
    )
  }
  found$side
}

start_python <- function(python) {
  if (reticulate::py_available(initialize = FALSE)) {
    return(invisible())
  }
  # The variable takes precedence over use_python, which would then only warn.
  before <- Sys.getenv("RETICULATE_PYTHON", NA)
  Sys.setenv(RETICULATE_PYTHON = python)
  on.exit(if (is.na(before)) Sys.unsetenv("RETICULATE_PYTHON") else Sys.setenv(RETICULATE_PYTHON = before))
  tryCatch(
    reticulate::py_config(),
    error = function(error) {
      why <- strsplit(conditionMessage(error), "\n")[[1]][1]
      stop(sprintf("R cannot start %s: %s", python, why), call. = FALSE)
    }
  )
  if (!reticulate::py_available(initialize = TRUE)) {
    stop(
      sprintf("R cannot start %s: it lacks a shared library; use a Python that has one", python),
      call. = FALSE
    )
  }
}

# Call a Python function; its warnings and refusals become those of R.
ask <- function(name, ...) {
  answer <- python_side()[[name]](...)
  warned <- reticulate::py_to_r(answer[["warnings"]])
  for (text in as.character(warned)) {
    warning(text, call. = FALSE)
  }
  error <- reticulate::py_to_r(answer[["error"]])
  if (!is.null(error)) {
    stop(error, call. = FALSE)
  }
  answer[["value"]]
}

# The same, with the value as one of R.
ask_r <- function(name, ...) {
  # First of all: reticulate has a sentence of its own where Python is missing.
  value <- ask(name, ...)
  reticulate::py_to_r(value)
}

to_bytes <- function(numbers) {
  writeBin(as.double(numbers), raw(), endian = "little")
}

from_bytes <- function(bytes) {
  readBin(bytes, "double", length(bytes) / 8L, endian = "little")
}
