from fillrank.data import kernel_cache

kernel_cache.install()
