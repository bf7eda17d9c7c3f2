"""fillrank."""
