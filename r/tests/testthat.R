library(testthat)
library(fedlasso)

test_check("fedlasso")
