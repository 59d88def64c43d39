// Package format recognises complete checkpoints. A Rule looks at a folder, or at a folder of a store (OnStore), and
// finds the saves in it: by a pattern and a marker that the definition gives, or by what TensorFlow, PyTorch, MXNet,
// XGBoost and LightGBM write. A save that is being written, or that lost one of its files, does not count: a restart
// from it would fail or begin from zero.
//
// It owns nothing and keeps nothing between two looks but what a Looker remembers of unchanged files. It promises to
// read no more of a file than it needs, to allocate no more than its bounds say whatever a program wrote there, and to
// wait for no pipe. It knows neither gangs nor generations nor registries: shim/checkpoint does, and calls it.
package format
