# Pooled cv.glmnet on the rows in FOLDER: lambda.min, lambda.1se and the relaxed fit.
#
#     Rscript judges.R FOLDER ROWS COLUMNS
#
# FOLDER has x.bin (doubles, column by column), y.bin (doubles) and fold.bin (whole numbers of four
# bytes). Writes fits.bin: for each of the three, the intercept, the coefficients, lambda and the
# seconds that it took.

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
rows <- as.integer(arguments[2])
columns <- as.integer(arguments[3])
read <- function(name, what, count) {
  readBin(file.path(folder, name), what, n = count, endian = "little")
}
x <- matrix(read("x.bin", "double", rows * columns), rows, columns)
y <- read("y.bin", "double", rows)
fold <- read("fold.bin", "integer", rows)

suppressPackageStartupMessages(library(glmnet))
cross_validate <- function(relax) {
  # As glmnet's own defaults: alpha = 1 and standardised columns; folds are those that were given.
  start <- proc.time()[["elapsed"]]
  fit <- cv.glmnet(x, y, alpha = 1, standardize = TRUE, foldid = fold, relax = relax)
  list(fit = fit, seconds = proc.time()[["elapsed"]] - start)
}
plain <- cross_validate(FALSE)
relaxed <- cross_validate(TRUE)

flatten <- function(coefficients, lambda, seconds) c(as.numeric(coefficients), lambda, seconds)
out <- c(
  flatten(coef(plain$fit, s = "lambda.min"), plain$fit$lambda.min, plain$seconds),
  flatten(coef(plain$fit, s = "lambda.1se"), plain$fit$lambda.1se, plain$seconds),
  flatten(
    coef(relaxed$fit, s = "lambda.min", gamma = "gamma.min"),
    relaxed$fit$relaxed$lambda.min, relaxed$seconds
  )
)
writeBin(as.double(out), file.path(folder, "fits.bin"), endian = "little")
