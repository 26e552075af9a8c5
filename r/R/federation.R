#' Fit across sites that R does not have
#'
#' Runs a fit of a federation as its coordinator: over a network, where the sites are connected to
#' the server of a project (`how = "network"`, the command `fedlasso federation fit`), or by files
#' that people carry (`how = "courier"`, the command `fedlasso courier`). Records stay at the sites;
#' R gets the model. Formulas are not available here, because R has no rows to expand.
#'
#' A courier fit takes several steps. The first call writes a file with questions for each site. People
#' carry these to the sites and bring the files with the answers back, which the next calls are given
#' as `answers`. A call returns the model once it is complete, and `NULL` before that.
#'
#' @param project folder of the project
#' @param out new folder of the model
#' @param target name of the response
#' @param family as in [fl_fit()]
#' @param lambda,alpha,keep,goal as in [fl_fit()]
#' @param how `"network"` or `"courier"`
#' @param answers in a courier fit, the files that the sites have sent, or folders with them
#' @param ... further options of the command, with `_` for `-`: `sites = c("north", "south")`,
#'   `time = "days"`, `event = "death"`, `round_trips = 15`, `compare = TRUE`
#' @return A model as of [fl_fit()], with the element `folder`.
#' @examples
#' \dontrun{
#' model <- fl_federation("trial", out = "model", target = "relapse", family = "binomial")
#' coef(model)
#' fl_card(model)
#' }
#' @export
fl_federation <- function(project, out, target = NULL, family = NULL, lambda = NULL, alpha = NULL,
                          keep = NULL, goal = NULL, how = c("network", "courier"), answers = NULL,
                          ...) {
  how <- match.arg(how)
  if (!is.null(family)) {
    family <- find_family(family, NULL, NULL)
    if (family == "gaussian") family <- NULL
  }
  options <- list(
    target = target, family = family, penalty = lambda, l1_ratio = alpha, keep = keep, goal = goal,
    ..., out = path.expand(out)
  )
  arguments <- command_options(options)
  command <- switch(how, network = c("federation", "fit"), courier = c("courier", "ask"))
  if (!is.null(answers)) {
    command <- c("courier", "collect")
    arguments <- path.expand(answers)
  }
  status <- run_fedlasso(c(command, path.expand(project), arguments))
  if (status != 0L) {
    stop(
      sprintf("fedlasso %s failed with exit code %d; its message is above", paste(command, collapse = " "), status),
      call. = FALSE
    )
  }
  if (how == "courier" && !file.exists(file.path(out, "model.json"))) {
    return(invisible(NULL))
  }
  fl_read(out)
}

#' Read the folder of a model
#'
#' @param folder a folder that `fedlasso fit`, `fedlasso federation fit` or [fl_card()] has written
#' @return A model as of [fl_fit()], with the element `folder`. It contains no records, so `s` is
#'   limited to the penalty of the model.
#' @examplesIf fedlasso::fl_available()
#' folder <- tempfile("cars")
#' fl_card(fl_fit(mpg ~ ., data = mtcars, lambda = 0.5), folder, open = FALSE)
#' coef(fl_read(folder))
#' @export
fl_read <- function(folder) {
  folder <- path.expand(folder)
  model <- ask("read", folder)
  fit <- new_fit(model, match.call(), ask_r("describe", model)$family)
  fit$folder <- folder
  fit
}

# Options of R as those of the command line.
command_options <- function(options) {
  options <- options[!vapply(options, is.null, NA)]
  parts <- lapply(names(options), function(name) {
    flag <- gsub("_", "-", name, fixed = TRUE)
    value <- options[[name]]
    if (is.logical(value)) {
      return(paste0(if (value) "--" else "--no-", flag))
    }
    if (is.numeric(value)) {
      # The fewest digits that give the number again.
      short <- format(value, digits = 15, trim = TRUE)
      value <- ifelse(as.numeric(short) == value, short, format(value, digits = 17, trim = TRUE))
    }
    # A value may begin with a hyphen.
    paste0("--", flag, "=", paste(value, collapse = ","))
  })
  unlist(parts)
}

run_fedlasso <- function(arguments) {
  python <- fl_python()
  if (!arguments[1] %in% found$commands) {
    listed <- run_python(c("-m", "fedlasso", arguments[1], "--help"), stdout = FALSE, stderr = FALSE)
    if (listed != 0L) {
      stop(
        sprintf("%s has no command fedlasso %s; update it: %s -m pip install -U fedlasso", python, arguments[1], python),
        call. = FALSE
      )
    }
    found$commands <- c(found$commands, arguments[1])
  }
  run_python(c("-m", "fedlasso", arguments))
}

# Run Python as a process of its own. R puts its own and the system's libraries first, and these may
# include another Python's.
run_python <- function(arguments, ...) {
  folders <- strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":", fixed = TRUE)[[1L]]
  others <- folders[!grepl("^(/usr)?/lib/", folders) & !startsWith(folders, R.home())]
  env <- if (length(folders)) paste0("LD_LIBRARY_PATH=", paste(others, collapse = ":")) else character()
  system2(fl_python(), shQuote(arguments), env = env, ...)
}
