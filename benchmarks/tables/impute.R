# The runner of the methods in R; the contract is that of impute.py.
#
#   Rscript impute.R FOLDER METHOD
#
# METHOD is the package: mice, missMDA or softImpute. All of them get standardised columns. A cell that a
# method leaves empty gets the mean of its column.

# The mean of 20 imputations by predictive mean matching, and their quantiles as the interval: those of
# type 6 of 20 draws hold the next draw with probability 90%. More than 30 columns take too long for 20: of
# them there are 5 imputations, and no intervals. Collinear columns stay in: by default mice does not
# fill them in.
fill_mice <- function(x) {
  n_imputations <- if (ncol(x) <= 30) 20 else 5
  frame <- as.data.frame(x)
  names(frame) <- paste0("v", seq_along(frame))
  imputed <- mice::mice(
    frame, m = n_imputations, method = "pmm", remove.collinear = FALSE, printFlag = FALSE
  )
  draws <- sapply(seq_len(n_imputations), function(i) as.matrix(mice::complete(imputed, i)))
  as_table <- function(values) matrix(values, nrow(x))
  if (n_imputations < 20) return(list(mean = as_table(rowMeans(draws))))
  limits <- apply(draws, 1, quantile, c(0.05, 0.95), type = 6, na.rm = TRUE)
  list(mean = as_table(rowMeans(draws)), low = as_table(limits[1, ]), high = as_table(limits[2, ]))
}

# Regularised iterative PCA; the number of components by generalised cross-validation.
fill_missMDA <- function(x) {
  colnames(x) <- paste0("v", seq_len(ncol(x)))
  n_components <- missMDA::estim_ncpPCA(x, ncp.max = min(20, dim(x) - 2), verbose = FALSE)$ncp
  list(mean = as.matrix(missMDA::imputePCA(x, ncp = n_components)$completeObs))
}

# Along a path of ten penalties, each fit starting from the one before; the penalty is chosen on a tenth
# of the observed cells.
fill_softImpute <- function(x) {
  observed <- which(!is.na(x))
  held_out <- sample(observed, length(observed) %/% 10)
  train <- replace(x, held_out, NA)
  penalties <- svd(replace(x, is.na(x), 0))$d[1] * 10^seq(-0.2, -2, length.out = 10)
  along_path <- function(table) {
    fits <- vector("list", length(penalties))
    fit <- NULL
    for (i in seq_along(penalties)) {
      fit <- softImpute::softImpute(
        table, rank.max = min(dim(x)) - 1, lambda = penalties[i], warm.start = fit
      )
      fits[[i]] <- softImpute::complete(table, fit)
    }
    fits
  }
  errors <- sapply(along_path(train), function(filled) mean((filled - x)[held_out]^2))
  list(mean = along_path(x)[[which.min(errors)]])
}

fill <- list(mice = fill_mice, missMDA = fill_missMDA, softImpute = fill_softImpute)

# Standardise, fill in, and go back to the units of the table.
fill_table <- function(x, method) {
  location <- colMeans(x, na.rm = TRUE)
  scale <- apply(x, 2, sd, na.rm = TRUE)
  scale[scale == 0] <- 1
  filled <- fill[[method]](sweep(sweep(x, 2, location), 2, scale, "/"))
  lapply(filled, function(values) {
    values[is.na(values)] <- 0
    sweep(sweep(values, 2, scale, "*"), 2, location, "+")
  })
}

given <- commandArgs(trailingOnly = TRUE)
for (table in sort(list.files(given[1], "^table-.*\\.csv$"))) {
  x <- unname(as.matrix(read.csv(file.path(given[1], table), header = FALSE, na.strings = "nan")))
  output <- function(name) file.path(given[1], sub("^table", name, table))
  set.seed(0)
  start <- proc.time()[["elapsed"]]
  filled <- fill_table(x, given[2])
  seconds <- proc.time()[["elapsed"]] - start
  for (name in names(filled)) {
    write.table(filled[[name]], output(name), sep = ",", row.names = FALSE, col.names = FALSE)
  }
  writeLines(format(seconds), sub("csv$", "txt", output("seconds")))
}
