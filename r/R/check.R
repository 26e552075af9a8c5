#' Check the tables of sites before a fit
#'
#' Reports every problem at once, as `fedlasso check` does: columns, types, levels and units that
#' differ between sites, missing values and codes for them, identifiers, constants, copies, and how
#' the outcome is coded. It also makes Table 1 by site.
#'
#' @param data a data frame with the rows of all sites, or the names of files, one per site
#' @param target name of the response
#' @param site name of the column with the site of each row
#' @param family as in [fl_fit()]
#' @param time,event names of survival time and event, instead of `target`
#' @param page an .html file to write; Table 1 and the findings go beside it as .csv files
#' @param missing,na,categorical,drop as the options of `fedlasso check`
#' @return An object of class `fl_check`: `problems`, the number of findings that must be mended,
#'   and `findings`, a data frame.
#' @examplesIf fedlasso::fl_available()
#' cars <- cbind(mtcars, hospital = rep(c("north", "south"), each = 16))
#' fl_check(cars, target = "mpg", site = "hospital")
#' @export
fl_check <- function(data, target = NULL, site = NULL, family = NULL, time = NULL, event = NULL,
                     page = NULL, missing = c("refuse", "mean"), na = NULL, categorical = NULL,
                     drop = NULL) {
  if (is.null(family)) {
    family <- if (is.null(time)) "gaussian" else "cox"
  }
  family <- find_family(family, NULL, NULL)
  files <- data
  if (is.data.frame(data)) {
    files <- file.path(tempfile("fl_check"), "data.csv")
    dir.create(dirname(files))
    on.exit(unlink(dirname(files), recursive = TRUE))
    utils::write.csv(data, files, row.names = FALSE, na = "")
    factors <- names(data)[vapply(data, is.factor, NA)]
    categorical <- union(categorical, setdiff(factors, c(target, site)))
  } else if (!is.character(data)) {
    stop("`data` is neither a data frame nor the names of files", call. = FALSE)
  }
  source <- list(
    target = target, site_column = site, time = time, event = event, missing = match.arg(missing),
    na = as.list(na), categorical = as.list(categorical), drop = as.list(drop)
  )
  source <- source[!vapply(source, is.null, NA)]
  options <- list(family = if (family == "gaussian") "linear" else family)
  found <- ask_r("check", as.list(files), source, options, page, is.data.frame(data))
  findings <- found$findings
  columns <- c("mend", "sites", "column", "what", "remedy")
  found$findings <- as_table(as.data.frame(
    sapply(columns, function(name) unlist(lapply(findings, `[[`, name)), simplify = FALSE)
  ))
  structure(found, class = "fl_check")
}

#' @export
print.fl_check <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}

#' The card of a model
#'
#' Writes the folder of a model: `card.html`, the model on one page; `model.json` for programs, which
#' `fedlasso predict` reads; and its numbers as .csv files.
#'
#' @param object a model of [fl_fit()] or [fl_cv()]
#' @param folder a new or empty folder
#' @param open whether to open the card in a browser
#' @return the path of the card, invisibly
#' @examplesIf fedlasso::fl_available()
#' model <- fl_fit(mpg ~ ., data = mtcars, lambda = 0.5)
#' fl_card(model, file.path(tempdir(), "cars"), open = FALSE)
#' @export
fl_card <- function(object, folder, open = interactive()) {
  if (!is.null(object$folder)) {
    card <- file.path(object$folder, "card.html")
  } else {
    ask("write", python_of(object), path.expand(folder), object$target)
    card <- file.path(folder, "card.html")
  }
  if (open) {
    utils::browseURL(normalizePath(card))
  }
  invisible(card)
}
