# Imputations of a table with several kinds of columns by R's mice with its default methods.
#
#   Rscript impute_kinds.R FOLDER N_IMPUTATIONS
#
# FOLDER has values.csv, numbers without labels: the values of numbers and the positions 0, 1, ... of
# levels, "nan" for missing values; and columns.csv with a line for each column: the number of its
# levels, 0 for numbers, and whether they are ordered. It leaves draw-1.csv, draw-2.csv, ... Collinear
# columns stay in: by default mice does not fill them in.

given <- commandArgs(trailingOnly = TRUE)
path <- function(name) file.path(given[1], name)
values <- as.matrix(read.csv(path("values.csv"), header = FALSE, na.strings = "nan"))
columns <- read.csv(path("columns.csv"), header = FALSE, col.names = c("levels", "ordered"))

as_column <- function(j) {
  n_levels <- columns$levels[j]
  if (n_levels == 0) return(values[, j])
  factor(values[, j], levels = seq_len(n_levels) - 1, ordered = columns$ordered[j] == 1)
}
frame <- as.data.frame(lapply(seq_len(ncol(values)), as_column))
names(frame) <- paste0("v", seq_along(frame))

imputed <- mice::mice(
  frame, m = as.integer(given[2]), remove.collinear = FALSE, printFlag = FALSE, seed = 0
)
as_number <- function(x) if (is.factor(x)) as.integer(x) - 1 else x
for (i in seq_len(imputed$m)) {
  filled <- sapply(mice::complete(imputed, i), as_number)
  write.table(
    filled, path(sprintf("draw-%d.csv", i)),
    sep = ",", row.names = FALSE, col.names = FALSE, na = "nan"
  )
}
