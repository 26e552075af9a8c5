# The command line that a federation's fit is started with.

test_that("options of R become those of the command", {
  options <- list(
    target = "y", family = "binomial", penalty = 0.1, keep = c("age", "sex"), goal = NULL,
    compare = TRUE, site_effects = FALSE, bounds = "dose=-1:2", out = "model"
  )
  expect_identical(
    fedlasso:::command_options(options),
    c(
      "--target=y", "--family=binomial", "--penalty=0.1", "--keep=age,sex", "--compare",
      "--no-site-effects", "--bounds=dose=-1:2", "--out=model"
    )
  )
})

test_that("a federation without its project is refused", {
  needs_python()
  printed <- capture.output(
    expect_error(
      fl_federation(tempfile("none"), out = tempfile("model"), target = "y"), "fedlasso federation fit failed with exit code 2"
    )
  )
  expect_length(printed, 0)
})
