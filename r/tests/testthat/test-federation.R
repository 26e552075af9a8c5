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

test_that("a fit by files takes several calls, and is the one of the same rows in one process", {
  needs_python()
  folder <- tempfile("courier")
  dir.create(folder)
  before <- setwd(folder)
  on.exit(setwd(before))
  sites <- c("north", "south", "west")
  drawn <- draw("gaussian")
  data <- data.frame(drawn$x, y = drawn$y, hospital = rep(sites, each = 80))
  # What people do at the sites, in this process.
  main <- reticulate::import("fedlasso.cli")$main
  courier <- function(...) {
    reticulate::py_capture_output(status <- main(as.list(c("courier", ...))))
    expect_identical(as.integer(status), 0L)
  }
  courier("init", "trial", rbind("--site", sites))
  for (site in sites) {
    utils::unzip(file.path("trial", "kits", paste0(site, ".zip")))
    utils::write.csv(data[data$hospital == site, 1:7], paste0(site, ".csv"), row.names = FALSE)
    courier("request", site)
  }
  courier("sign", "trial", list.files(".", "[.]csr$", full.names = TRUE, recursive = TRUE))
  for (site in sites) {
    courier("accept", site, file.path("trial", "kits", paste0(site, ".crt")), "--yes")
  }
  collect <- function(...) {
    capture.output(model <- fl_federation("trial", out = "model", ..., how = "courier"))
    model
  }
  model <- collect(target = "y", goal = "objective")
  expect_null(model)
  for (trip in 1:9) {
    for (site in sites) {
      courier("answer", site, "trial/outbox", paste0(site, ".csv"), "--yes")
    }
    answers <- list.files("trial/outbox", sprintf("-%02d[.]fla$", trip), full.names = TRUE)
    model <- collect(answers = answers)
    if (!is.null(model)) break
  }
  same <- fl_fit(drawn$x, drawn$y, site = data$hospital, lambda = model$lambda)
  expect_lt(max(abs(coef(model) - coef(same))), 1e-9)
  expect_identical(model$sites$site, sites)
  expect_identical(fl_card(model, open = FALSE), "model/card.html")
})
