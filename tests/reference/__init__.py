"""Slow twins: the algorithm core once more, in plain Python lists and floats, obvious enough to be believed.

Nothing here imports the package under test, and nothing is computed incrementally: a score is computed anew from the
rows of each branch. `NOTES.md` lists the semantic details that the published figures decide.

- `table`: `Column`, `Target`, `Table`; `read_table(folder, name)` reads a data set of the reference folder.
- `scores`: impurities, gains, split information, chi-square, attribute costs.
- `candidates`: all ways in which one attribute can divide the rows of a node, in tie order.
- `splits`: the best split of one attribute at a node: window, gain, MDL correction, ratio, cost.
- `missing`: imputation, shared-out rows, surrogate splits.
- `grower`: `grow(columns, target, weights, config)`: stopping rules, guard, growth order.
- `tree`: `Node`, its counts and errors, collapse.
- `predictor`: weighted paths, distribution, class or number of a row.
- `presets`: `preset(name, kind, **fields)`: a training config as a plain dict of TrainingConfig's field names.
- `published`: the config that a published command line stands for; `replay`: hold-out and fold experiments.
- `weka_text`, `rpart_text`: the text form in which the published systems print their trees.

`grow(columns, target, weights, config) -> Node`

- `columns`: a list of (kind, values, k); kind "numeric" (floats, k is ignored) or "nominal" (codes 0..k-1);
  None is a missing value.
- `target`: ("class", codes, k) or ("number", floats, 0).
- `weights`: a float a row; rows of weight 0 are left out.
- `config`: `presets.preset("cart", kind, **fields)`. `attribute_costs` and `cut_points` are keyed by the column's
  position, `class_weight` by the class code (or "balanced").
- `validation` (only `grow_table` and `grow_columns`): the Table that `validation_stop` looks at.

A `Node` holds

- `weight`: the training weight that reached it; `stats`: the weight of each class, or (weight, mean, sum of squared
  deviations); `value`: the class code or number that it answers as a leaf (the parent's if no row reached it);
- at an inner node `attribute` (position of the column), `test` ("numeric", "nominal" or "unknown"; "leaf" at a leaf);
  `threshold`: numeric, branch 0 if value <= threshold, else 1 (NaN otherwise); `branch_of_category`: nominal, a branch
  for each category 0..k-1, -1 if it was not seen here (empty otherwise); "unknown": branch 0 known, 1 unknown;
- `gain`: the criterion's value, corrected (MDL, F/N), and `score`: what attributes competed by (ratio, after costs);
- `fallback`: the branch of a missing or unseen value where the strategy is not fractional;
- `branch_weight`: the share of the known weight (with `direction`: of all weight) that went to each child;
- `surrogates`: in order, with `missing="surrogate"`; `children`: a Node a branch.
"""
