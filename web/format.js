// Numbers and times for people.

/**
 * JSON has no such numbers; the server sends their names.
 * @param {any} v
 * @returns {number}
 */
export function numberOf(v) {
  if (typeof v === 'number') return v;
  return v === 'Infinity' ? Infinity : v === '-Infinity' ? -Infinity : NaN;
}

/** @param {number} v @param {number} [digits] */
export function short(v, digits = 5) {
  if (!Number.isFinite(v)) return Number.isNaN(v) ? 'NaN' : v > 0 ? '∞' : '-∞';
  if (v === 0) return '0';
  const size = Math.abs(v);
  if (size >= 1e-4 && size < 1e7) return String(Number(v.toPrecision(digits)));
  return v.toExponential(Math.max(0, digits - 1)).replace(/\.?0+e/, 'e');
}

/** @param {number} n */
export function whole(n) { return n.toLocaleString('en-US'); }

/** @param {number} n */
export function bytes(n) {
  const names = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (n >= 1000 && i + 1 < names.length) { n /= 1000; i++; }
  return `${i === 0 ? n : n.toPrecision(3)} ${names[i]}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return '';
  const sign = seconds < 0 ? '-' : '';
  const s = Math.abs(seconds);
  if (s < 1) return `${sign}${Math.round(s * 1000)} ms`;
  if (s < 60) return `${sign}${Number(s.toPrecision(3))} s`;
  const units = s < 3600 ? [60, 'min', 1, 's'] : s < 86400 ? [3600, 'h', 60, 'min'] : [86400, 'd', 3600, 'h'];
  const small = Math.round(s / Number(units[2])), many = Number(units[0]) / Number(units[2]);
  const rest = small % many;
  return `${sign}${Math.floor(small / many)} ${units[1]}${rest > 0 ? ` ${rest} ${units[3]}` : ''}`;
}

/** @param {number} wall seconds since 1970 */
export function moment(wall) {
  if (!Number.isFinite(wall)) return '';
  const d = new Date(wall * 1000);
  /** @param {number} v */
  const two = v => String(v).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
