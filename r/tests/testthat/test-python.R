# Where Python is found, and what is printed where it is not.

run_script <- function(lines, env = character(), folder = tempdir()) {
  script <- tempfile(fileext = ".R")
  writeLines(c(sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")), lines), script)
  before <- setwd(folder)
  on.exit(setwd(before))
  suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = TRUE, env = env
  ))
}

fit_line <- "tryCatch(fedlasso::fl_fit(mpg ~ wt, data = mtcars, lambda = 1), error = function(e) cat(conditionMessage(e)))"

test_that("a missing Python is one sentence", {
  needs_python()
  printed <- run_script(fit_line, "RETICULATE_PYTHON=/nowhere/python")
  expect_identical(
    printed,
    "There is no Python at /nowhere/python; correct RETICULATE_PYTHON or options(fedlasso.python = )"
  )
  printed <- run_script(c("cat(fedlasso::fl_available())"), "RETICULATE_PYTHON=/nowhere/python")
  expect_identical(printed, "FALSE")
})

test_that("a Python without fedlasso is one sentence", {
  needs_python()
  skip_on_os("windows")
  folder <- tempfile("empty")
  status <- fedlasso:::run_python(c("-m", "venv", "--without-pip", folder))
  expect_equal(status, 0L)
  python <- file.path(folder, "bin", "python")
  printed <- run_script(fit_line, c(paste0("RETICULATE_PYTHON=", python), "PYTHONPATH="))
  expect_identical(
    printed,
    sprintf("%s has no package fedlasso; install it: %s -m pip install 'fedlasso[fit]'", python, python)
  )
})

test_that("the environment of a checkout and the active one are found by themselves", {
  checkout <- file.path(tempfile("checkout"))
  dir.create(file.path(checkout, "src", "fedlasso"), recursive = TRUE)
  file.create(file.path(checkout, "src", "fedlasso", "__init__.py"))
  python <- file.path(checkout, ".venv", "bin", "python")
  dir.create(dirname(python), recursive = TRUE)
  file.create(python)
  below <- file.path(checkout, "data", "north")
  dir.create(below, recursive = TRUE)
  expect_identical(normalizePath(fedlasso:::in_checkout(below)), normalizePath(python))
  expect_identical(fedlasso:::in_checkout(tempdir()), "")
  expect_identical(fedlasso:::in_environment(file.path(checkout, ".venv")), python)
  expect_identical(fedlasso:::in_environment(checkout), "")
})
