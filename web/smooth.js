// Smoothing as TensorBoard's: an exponential moving average that is not drawn towards 0 at its beginning.

/** @param {ArrayLike<number>} values @param {number} weight 0: none, below 1 @returns {Float64Array} */
export function smooth(values, weight) {
  const out = new Float64Array(values.length);
  let last = 0, count = 0, constant = true;
  for (let i = 1; i < values.length && constant; i++) constant = values[i] === values[0];
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (constant || !Number.isFinite(v) || weight <= 0) {
      out[i] = v;
      continue;
    }
    last = last * weight + (1 - weight) * v;
    count++;
    out[i] = last / (1 - weight ** count);
  }
  return out;
}
