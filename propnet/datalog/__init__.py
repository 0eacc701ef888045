"""Rules evaluated as they stand: joins, safety, stratification, and the interpreter that judges the compiler."""
