"""The readers: files and objects of other libraries, all to a `FactorGraph` or a `MarkovLogic`."""
