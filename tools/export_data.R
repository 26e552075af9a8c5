# Writes the data sets of the study `real` that installed R packages bring along, as NAME.csv with
# the predictors and the response `y`, into a folder:
#
#     Rscript tools/export_data.R FOLDER
#
# The data stay where they come from: nothing of them is kept in this repository. Text columns
# become indicators of their levels but the first; rows with a missing value are left out.

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 1) stop("give one folder: Rscript tools/export_data.R FOLDER")
folder <- arguments[1]
dir.create(folder, showWarnings = FALSE, recursive = TRUE)

# Data sets of a package, by name.
get_data <- function(package, name, file = name) {
  place <- new.env()
  data(list = file, package = package, envir = place)
  get(name, envir = place)
}

# All columns of a data frame but some, and the response.
table_of <- function(frame, response, leave_out = character()) {
  frame <- as.data.frame(frame)
  list(x = frame[setdiff(names(frame), c(response, leave_out))], y = frame[[response]])
}

# Spectra, or other numbers in one matrix.
spectra_of <- function(matrix, y) list(x = as.data.frame(unclass(matrix)), y = y)

numbers <- function(frame) frame[vapply(frame, is.numeric, logical(1))]

# One line per data set: the package (Debian: r-cran-PACKAGE in lower case), and how it is read.
sets <- list(
  boston = list("MASS", function() table_of(get_data("MASS", "Boston"), "medv")),
  gasoline = list("pls", function() {
    d <- get_data("pls", "gasoline")
    spectra_of(d$NIR, d$octane)
  }),
  yarn = list("pls", function() {
    d <- get_data("pls", "yarn")
    spectra_of(d$NIR, d$density)
  }),
  # Endpoints are water, fat and protein; this is fat.
  meats = list("caret", function() {
    spectra_of(get_data("caret", "absorp", "tecator"), get_data("caret", "endpoints", "tecator")[, 2])
  }),
  mayonnaise = list("pls", function() {
    d <- get_data("pls", "mayonnaise")
    spectra_of(d$NIR, as.numeric(d$oil.type))
  }),
  bloodbrain = list("caret", function() {
    spectra_of(
      get_data("caret", "bbbDescr", "BloodBrain"), get_data("caret", "logBBB", "BloodBrain")
    )
  }),
  cox2 = list("caret", function() {
    spectra_of(get_data("caret", "cox2Descr", "cox2"), log10(get_data("caret", "cox2IC50", "cox2")))
  }),
  cars = list("caret", function() table_of(get_data("caret", "cars"), "Price")),
  uscrime = list("MASS", function() table_of(get_data("MASS", "UScrime"), "y")),
  cpus = list("MASS", function() table_of(get_data("MASS", "cpus"), "perf", c("name", "estperf"))),
  birthwt = list("MASS", function() {
    d <- get_data("MASS", "birthwt")
    d$race <- factor(d$race)
    table_of(d, "bwt", "low")
  }),
  cars93 = list("MASS", function() {
    table_of(numbers(get_data("MASS", "Cars93")), "Price", c("Min.Price", "Max.Price"))
  }),
  ozone = list("mlbench", function() {
    d <- get_data("mlbench", "Ozone")
    d[] <- lapply(d, function(column) as.numeric(as.character(column)))
    table_of(d, "V4")
  }),
  sonar = list("mlbench", function() {
    d <- get_data("mlbench", "Sonar")
    d$Class <- as.numeric(d$Class) - 1
    table_of(d, "Class")
  }),
  ames = list("modeldata", function() table_of(numbers(get_data("modeldata", "ames")), "Sale_Price")),
  concrete = list("modeldata", function() {
    table_of(get_data("modeldata", "concrete"), "compressive_strength")
  }),
  speech = list("modeldata", function() {
    d <- as.data.frame(get_data("modeldata", "pd_speech"))
    d$class <- as.numeric(factor(d$class)) - 1
    table_of(d, "class", "id")
  }),
  prostate = list("lasso2", function() table_of(get_data("lasso2", "Prostate"), "lpsa")),
  bodyfat = list("TH.data", function() table_of(get_data("TH.data", "bodyfat"), "DEXfat")),
  glaucoma = list("TH.data", function() {
    d <- get_data("TH.data", "GlaucomaM")
    d$Class <- as.numeric(d$Class) - 1
    table_of(d, "Class")
  }),
  schools = list("AER", function() {
    table_of(get_data("AER", "CASchools"), "read", c("district", "school", "county", "math"))
  })
)

export <- function(name, set) {
  complete <- complete.cases(set$x) & !is.na(set$y)
  x <- model.matrix(~ ., set$x[complete, , drop = FALSE])[, -1, drop = FALSE]
  colnames(x) <- make.unique(gsub("[^A-Za-z0-9_]+", "_", colnames(x)))
  out <- data.frame(x, y = as.numeric(set$y)[complete], check.names = FALSE)
  write.csv(format(out, digits = 15, trim = TRUE), file.path(folder, paste0(name, ".csv")),
            row.names = FALSE, quote = FALSE)
  cat(sprintf("%s: %d rows, %d columns\n", name, nrow(out), ncol(out) - 1))
}

absent <- character()
for (name in names(sets)) {
  package <- sets[[name]][[1]]
  if (requireNamespace(package, quietly = TRUE)) {
    export(name, sets[[name]][[2]]())
  } else {
    absent <- union(absent, package)
    cat(sprintf("%s: not exported, the package %s is not installed\n", name, package))
  }
}
if (length(absent)) {
  cat("on Debian: apt-get install", paste0("r-cran-", tolower(absent)), "\n")
}
