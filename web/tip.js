// The one tooltip of all charts: a row for each line, the best ones first, the nearest strong.
import {el, swatch} from './dom.js';

const MOST = 15;
/** @type {any} */
let box = null;

/**
 * @param {{colour: string, cells: string[], near: number, order: number}[]} rows near: distance from the pointer
 * @param {string[]} heads
 * @param {PointerEvent | null} event null: none is shown
 */
export function showTip(rows, heads, event) {
  box?.remove();
  box = null;
  if (!event || rows.length === 0) return;
  const nearest = Math.min(...rows.map(row => row.near));
  // The nearest is among them, whatever its value.
  rows.sort((a, b) => b.order - a.order || a.near - b.near);
  let shown = rows.slice(0, MOST);
  const close = rows.find(row => row.near === nearest);
  if (close && !shown.includes(close)) shown = [...shown.slice(0, MOST - 1), close];
  const table = el('table', {}, el('tr', {}, el('th'), ...heads.map(text => el('th', {text}))));
  for (const row of shown) {
    table.append(el('tr', {class: row === close ? 'near' : ''}, el('td', {}, swatch(row.colour)),
                    ...row.cells.map(text => el('td', {text}))));
  }
  if (rows.length > shown.length) table.append(el('tr', {}, el('td'), el('td', {text: `and ${rows.length - shown.length} more`})));
  box = el('div', {id: 'tip', role: 'tooltip'}, table);
  document.body.append(box);
  const size = box.getBoundingClientRect();
  const x = event.clientX + 16 + size.width > innerWidth ? event.clientX - size.width - 16 : event.clientX + 16;
  const y = Math.min(event.clientY + 12, innerHeight - size.height - 4);
  box.style.left = `${Math.max(2, x)}px`;
  box.style.top = `${Math.max(2, y)}px`;
}
