"""What states weigh, without a sample: bounds on log Z by density, and log densities from lists."""
