"""Sound: the operators of tflite-micro's signal library, which are custom operators of a file.

Kinds: `signal_window`, `signal_fft_auto_scale`, `signal_rfft`, `signal_energy`,
`signal_filter_bank`, `signal_filter_bank_square_root`, `signal_spectral_subtraction`,
`signal_pcan`, `signal_filter_bank_log` are the way to features. `signal_framer`, `signal_delay` and
`signal_stacker` cut streams, `signal_irfft` and `signal_overlap_add` make streams again. `fourier`
and `spectrum` have their arithmetic, which `toolchain.preprocess` shares. `rfft2d` is TFLite's
transform of float32, by `fourier_f32`.
"""
