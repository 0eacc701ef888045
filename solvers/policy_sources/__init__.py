"""Where a policy to be judged comes from: a file, a function, arrays, or OpenSpiel."""
