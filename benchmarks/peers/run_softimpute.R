# The runner of R's softImpute by alternating least squares. See contract.py; R reads no .npz, so that
# the entries come as a table: part (train or test), row, column (from 0), value.
#
#   Rscript run_softimpute.R PROBLEM.csv RESULT.json --rank 30 --threads 2 --iterations 40 --seed 0
#
# Rows and columns are centred by biScale first. The penalty is what fillrank's search on held-out
# training entries of MovieLens 1M finds for the same problem. It cannot be watched: it is
# fitted anew for each number of iterations.

suppressPackageStartupMessages(library(softImpute))

penalty <- 20
fits <- c(1, 2, 5, 10, 20, 40)

given <- commandArgs(trailingOnly = TRUE)
option <- function(name) as.integer(given[match(paste0("--", name), given) + 1])
set.seed(option("seed"))
fits <- fits[fits <= option("iterations")]

table <- read.csv(given[1])
shape <- c(max(table$row), max(table$column)) + 1
train <- table[table$part == "train", ]
test <- table[table$part == "test", ]

x <- Incomplete(train$row + 1, train$column + 1, train$value)
stopifnot(dim(x) == shape)  # Incomplete takes the shape from the training entries alone

status <- function(name) {
  line <- grep(paste0("^", name), readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
watched <- file.exists("/proc/self/clear_refs")
if (watched) cat("5", file = "/proc/self/clear_refs")
before <- if (watched) status("VmRSS") else NA

seconds <- rmse <- numeric(length(fits))
for (i in seq_along(fits)) {
  began <- proc.time()[["elapsed"]]
  centred <- biScale(x, row.scale = FALSE, col.scale = FALSE)
  fit <- softImpute(
    centred, rank.max = option("rank"), lambda = penalty, type = "als", maxit = fits[i], thresh = 0
  )
  seconds[i] <- proc.time()[["elapsed"]] - began
  predictions <- impute(fit, test$row + 1, test$column + 1)
  rmse[i] <- sqrt(mean((pmin(pmax(predictions, 1), 5) - test$value)^2))
}
each <- quantile(diff(seconds) / diff(fits), c(0.1, 0.5, 0.9))
memory <- if (watched) sprintf("%.1f", status("VmHWM") - before) else "null"
points <- sprintf('{"iteration": %d, "seconds": %.4f, "test_rmse": %.6f}', fits, seconds, rmse)
cat(
  sprintf('{"version": "%s",\n "curve": [%s],\n', packageVersion("softImpute"),
          paste(points, collapse = ",\n  ")),
  sprintf('"seconds_per_iteration": {"median": %.5f, "low": %.5f, "high": %.5f},\n',
          each[[2]], each[[1]], each[[3]]),
  sprintf('"start_seconds": null, "finish_seconds": 0, "first_use_seconds": null, "memory_mb": %s}\n', memory),
  file = given[2]
)
