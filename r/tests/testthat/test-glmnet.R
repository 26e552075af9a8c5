# At the same penalty the coefficients are those of glmnet.

for (family in families) {
  test_that(paste(family, "coefficients are those of glmnet at a penalty"), {
    needs_python()
    needs_glmnet()
    drawn <- draw(family)
    own <- fit_drawn(drawn, family)
    expect_same_model(own, exact_glmnet(drawn, family))
    expect_gt(sum(coef(own)[colnames(drawn$x), ] == 0), 0)
    expect_lte(own$gap, 1e-8)
  })

  test_that(paste(family, "elastic nets are those of glmnet"), {
    needs_python()
    needs_glmnet()
    # Without an intercept, as in Cox models, a small gap alone leaves errors of up to 2e-4.
    for (seed in if (family == "cox") 1:12 else 1:2) {
      drawn <- draw(family, seed = seed)
      own <- fit_drawn(drawn, family, alpha = 0.4)
      expect_same_model(own, exact_glmnet(drawn, family, alpha = 0.4))
    }
    weights <- drawn$weights
    if (family == "gaussian") {
      centre <- weighted.mean(drawn$y, weights)
      drawn$y <- drawn$y / sqrt(weighted.mean((drawn$y - centre)^2, weights))
    }
    own <- fit_drawn(drawn, family, alpha = 0.4, weights = weights)
    expect_same_model(own, exact_glmnet(drawn, family, alpha = 0.4, weights = weights))
  })

  test_that(paste(family, "fits with weights and an offset are those of glmnet"), {
    needs_python()
    needs_glmnet()
    drawn <- draw(family)
    both <- list(weights = drawn$weights, offset = drawn$offset)
    own <- do.call(fit_drawn, c(list(drawn, family), both))
    other <- do.call(exact_glmnet, c(list(drawn, family), both))
    expect_same_model(own, other)
    expect_gt(max(abs(coef(own) - coef(fit_drawn(drawn, family)))), 0.01)
  })

  test_that(paste(family, "fits within bounds are those of glmnet"), {
    needs_python()
    needs_glmnet()
    drawn <- draw(family)
    lower <- c(0, -0.05, -1, 0, 0, 0)
    upper <- c(0.2, 1, 0.5, 1, 1, 1)
    own <- fit_drawn(drawn, family, lower.limits = lower, upper.limits = upper)
    other <- exact_glmnet(drawn, family, lower.limits = lower, upper.limits = upper)
    expect_same_model(own, other)
    expect_equal(coef(own)["v1", 1], 0.2)
  })

  test_that(paste(family, "fits with penalty factors are those of glmnet"), {
    needs_python()
    needs_glmnet()
    drawn <- draw(family)
    factors <- c(1, 2, 0.5, 0, 1, Inf)
    own <- fit_drawn(drawn, family, penalty.factor = factors)
    expect_same_model(own, exact_glmnet(drawn, family, penalty.factor = factors))
    expect_equal(coef(own)["v6", 1], 0)
    # Kept columns leave the penalty of the others as it is, and glmnet increases it.
    kept <- fit_drawn(drawn, family, keep = "v4")
    other <- exact_glmnet(drawn, family, penalty.factor = c(1, 1, 1, 0, 1, 1), lambda = 0.05 * 5 / 6)
    expect_same_model(kept, other)
  })

  test_that(paste(family, "fits without scaling the columns are those of glmnet"), {
    needs_python()
    needs_glmnet()
    drawn <- draw(family)
    own <- fit_drawn(drawn, family, standardize = FALSE)
    expect_same_model(own, exact_glmnet(drawn, family, standardize = FALSE))
  })

  test_that(paste(family, "paths are those of glmnet, and glmnet's tools accept them"), {
    needs_python()
    needs_glmnet()
    drawn <- draw(family)
    if (family == "cox") drawn$site <- rep("all", length(drawn$site))
    extra <- if (family == "cox") list(ties = "breslow") else list()
    given <- list(drawn$x, drawn$y, site = drawn$site, family = family, nfolds = 4)
    cv <- do.call(fl_cv, c(given, extra))
    own <- as_glmnet(cv)
    other <- exact_glmnet(drawn, family, lambda = cv$lambda)
    expect_s3_class(own, "cv.glmnet")
    expect_identical(class(own$glmnet.fit), class(other))
    expect_same_model(own$glmnet.fit, other)
    # The deviance of glmnet's Cox models is relative to a saturated one; here it is relative to none.
    scale <- 1
    if (family == "cox") {
      empty <- survival::coxph(drawn$y ~ 1, ties = "breslow")$loglik
      scale <- other$nulldev / (-2 * empty)
    }
    expect_lt(max(abs(own$glmnet.fit$dev.ratio - scale * other$dev.ratio)), 1e-6)
    expect_equal(own$glmnet.fit$df, other$df)
    for (s in list("lambda.1se", "lambda.min", mean(cv$lambda[2:3]))) {
      at <- if (is.character(s)) own[[s]] else s
      expect_equal(predict(own, drawn$x, s = s), predict(own$glmnet.fit, drawn$x, s = at), ignore_attr = TRUE)
    }
    if (family != "cox") {
      expect_equal(own$glmnet.fit$nulldev, other$nulldev)
      ours <- predict(cv, drawn$x, s = c("lambda.min", "lambda.1se"), type = "response")
      theirs <- predict(own, drawn$x, s = c(cv$lambda.min, cv$lambda.1se), type = "response")
      expect_equal(ours, theirs, ignore_attr = TRUE)
    }
    expect_output(print(own), "Lambda")
    if (requireNamespace("broom", quietly = TRUE)) {
      expect_named(broom::tidy(own), names(tidy(cv)))
      expect_equal(broom::glance(own)$lambda.1se, cv$lambda.1se)
    }
  })
}

test_that("a model at one penalty is a path of one for glmnet", {
  needs_python()
  needs_glmnet()
  drawn <- draw("binomial")
  own <- fit_drawn(drawn, "binomial")
  other <- exact_glmnet(drawn, "binomial")
  same <- as_glmnet(own)
  expect_equal(same$nulldev, other$nulldev)
  expect_equal(same$dev.ratio, other$dev.ratio)
  expect_equal(predict(same, drawn$x, type = "class"), predict(other, drawn$x, type = "class"))
})
