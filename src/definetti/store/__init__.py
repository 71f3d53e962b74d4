"""Result files: written by suffix (.json, .csv, .parquet), and read back with those that other programs write."""
