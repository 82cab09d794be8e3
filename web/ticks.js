// Where the marks of an axis stand, and what they say.
import {duration, short} from './format.js';

/** @param {number} low @param {number} high @param {number} most @returns {{at: number, text: string}[]} */
export function linearTicks(low, high, most) {
  const raw = (high - low) / Math.max(1, most);
  if (!(raw > 0) || !Number.isFinite(raw)) return [{at: low, text: short(low)}];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw * 0.75) || raw;
  const ticks = [];
  const digits = Math.max(1, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / step + 1)) + 1);
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    const at = k * step;
    ticks.push({at, text: tickText(at, Math.min(digits, 12))});
  }
  return ticks;
}

/** @param {number} v @param {number} digits */
function tickText(v, digits) {
  const size = Math.abs(v);
  if (size >= 1e4 && size < 1e12) {
    const [unit, name] = size >= 1e9 ? [1e9, 'G'] : size >= 1e6 ? [1e6, 'M'] : [1e3, 'k'];
    return Number((v / Number(unit)).toPrecision(digits)) + String(name);
  }
  return short(v, digits);
}

/**
 * Of logarithms to base 10.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 */
export function logTicks(low, high, most) {
  const first = Math.floor(low), last = Math.ceil(high);
  const every = Math.max(1, Math.ceil((last - first) / Math.max(1, most)));
  const ticks = [];
  for (let k = first; k <= last; k += every) {
    for (const m of last - first <= 2 ? [1, 2, 5] : [1]) {
      const at = k + Math.log10(m);
      if (at >= low && at <= high) ticks.push({at, text: short(m * 10 ** k, 2)});
    }
  }
  return ticks.length > 0 ? ticks : [{at: low, text: short(10 ** low, 3)}];
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/**
 * Of seconds since the line began.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 */
export function relativeTicks(low, high, most) {
  if (high - low < 5) return linearTicks(low, high, most).map(t => ({at: t.at, text: duration(t.at)}));
  const step = timeStep((high - low) / Math.max(1, most));
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push({at, text: duration(at)});
  return ticks;
}

/** @param {number} raw */
function timeStep(raw) { return TIME_STEPS.find(s => s >= raw) || Math.ceil(raw / 604800) * 604800; }

/**
 * Of seconds since 1970, in the time of this place.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 */
export function wallTicks(low, high, most) {
  const step = timeStep((high - low) / Math.max(1, most));
  const shift = new Date(low * 1000).getTimezoneOffset() * 60;
  const ticks = [];
  for (let at = Math.ceil((low - shift) / step) * step + shift; at <= high; at += step) {
    const d = new Date(at * 1000);
    const clock = `${String(d.getHours()).padStart(2, '0')}:${String(d.getMinutes()).padStart(2, '0')}`;
    const day = `${d.getMonth() + 1}/${d.getDate()}`;
    ticks.push({at, text: step >= 86400 ? day : high - low > 86400 ? `${day} ${clock}` :
      step < 60 ? `${clock}:${String(d.getSeconds()).padStart(2, '0')}` : clock});
  }
  return ticks;
}
