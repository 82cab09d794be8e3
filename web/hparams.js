// The tab of hyperparameters: a table of sessions, and the same as lines through parallel axes.
import {ask} from './api.js';
import {emptyTab} from './cards.js';
import {el, pattern, throttle} from './dom.js';
import {numberOf, short} from './format.js';
import {compareNames, store} from './store.js';

/** @typedef {{title: string, metric: boolean, index: number}} Column */

const STATUS = ['', 'done', 'failed', 'runs'];
const view = {sort: -1, down: false, filter: '', colour: -1};

/** @param {any} session @param {Column} column */
function valueOf(session, column) { return (column.metric ? session.metrics : session.hparams)[column.index]; }

/** @param {any} v */
function isNumber(v) { return typeof v === 'number' || ['NaN', 'Infinity', '-Infinity'].includes(v); }

/** @param {any} a @param {any} b */
function compareValues(a, b) {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;  // what is missing stands last
  if (isNumber(a) && isNumber(b)) return numberOf(a) - numberOf(b);
  return compareNames(String(a), String(b));
}

class Table {
  /** @param {HTMLElement} main */
  constructor(main) {
    /** @type {any} */
    this.data = {hparams: [], metrics: [], sessions: []};
    const filter = el('input', {type: 'search', placeholder: 'Filter sessions: text, or lr>0.1', 'aria-label': 'Filter sessions', size: 32});
    filter.value = view.filter;
    filter.addEventListener('input', () => {
      view.filter = filter.value;
      this.draw();
    });
    this.note = el('span', {class: 'note'});
    this.axes = el('div', {class: 'chart'});
    this.axesCard = el('article', {class: 'card wide', 'aria-label': 'Parallel axes'}, this.axes);
    this.box = el('div', {class: 'scroll'});
    this.top = el('div', {class: 'toolbar'}, filter, this.note);
    this.body = el('div', {}, this.axesCard, el('p'), this.box);
    main.append(this.top, this.body);
    this.resize = new ResizeObserver(() => this.drawAxes());
    this.resize.observe(this.axes);
    this.load = throttle(() => ask('/api/hparams').then(data => {
      this.data = data;
      this.draw();
    }, e => { this.note.textContent = e.message; }), 1000);
    this.load();
  }

  /** @returns {Column[]} */
  columns() {
    const title = (/** @type {any} */ one) => one.display_name || (one.group ? `${one.group}/${one.name}` : one.name);
    return [...this.data.hparams.map((/** @type {any} */ one, /** @type {number} */ index) => ({title: title(one), metric: false, index})),
      ...this.data.metrics.map((/** @type {any} */ one, /** @type {number} */ index) => ({title: title(one), metric: true, index}))];
  }

  /** The sessions of the runs that are shown and that fit the filter, sorted. */
  sessions() {
    const columns = this.columns(), shown = store.shownRuns();
    const fits = fitsFilter(view.filter, columns);
    const sessions = this.data.sessions.filter((/** @type {any} */ one) => (shown.has(one.run) || !store.colours.has(one.run)) && fits(one));
    const column = columns[view.sort];
    sessions.sort((/** @type {any} */ a, /** @type {any} */ b) => {
      const order = column ? compareValues(valueOf(a, column), valueOf(b, column)) : compareNames(a.run, b.run);
      return view.down ? -order : order;
    });
    return sessions;
  }

  draw() {
    const columns = this.columns(), sessions = this.sessions();
    this.body.hidden = this.data.sessions.length === 0;
    this.top.parentElement?.querySelector('.empty')?.remove();
    if (this.body.hidden) {
      this.top.after(emptyTab('hyperparameters', 'summary::hparams({{"learning_rate", 0.1}, {"units", 64}});'));
      return;
    }
    this.note.textContent = `${sessions.length} of ${this.data.sessions.length} sessions`;
    const sortBy = (/** @type {number} */ i) => {
      view.down = view.sort === i && !view.down;
      view.sort = i;
      this.draw();
    };
    const mark = (/** @type {number} */ i) => view.sort !== i ? '' : view.down ? ' ▾' : ' ▴';
    const head = el('tr', {}, el('th', {}, el('button', {text: 'session' + mark(-1), onclick: () => sortBy(-1)})),
      ...columns.map((column, i) => el('th', {'aria-sort': view.sort !== i ? 'none' : view.down ? 'descending' : 'ascending'},
        el('button', {text: column.title + mark(i), title: column.metric ? 'metric' : 'hyperparameter', onclick: () => sortBy(i)}))), el('th', {text: 'status'}));
    const table = el('table', {class: 'data'}, head);
    for (const session of sessions) {
      const dot = el('span', {class: 'swatch'});
      dot.style.background = store.colourOf(session.run);
      table.append(el('tr', {}, el('td', {}, el('span', {class: 'run'}, dot, session.run)), ...columns.map(column => {
        const v = valueOf(session, column);
        return el('td', {class: isNumber(v) ? 'number' : '', text: v === null ? '' : isNumber(v) ? short(numberOf(v), 6) : String(v)});
      }), el('td', {text: STATUS[session.status] || ''})));
    }
    this.box.replaceChildren(table);
    this.drawAxes();
  }

  drawAxes() {
    const sessions = this.sessions();
    const columns = this.columns().filter(column => sessions.some((/** @type {any} */ one) => valueOf(one, column) !== null)).slice(0, 14);
    this.axes.replaceChildren();
    if (columns.length < 2 || sessions.length === 0) {
      this.axesCard.hidden = true;
      return;
    }
    this.axesCard.hidden = false;
    const canvas = el('canvas', {role: 'img', 'aria-label': 'a line for each session through its values'});
    this.axes.append(canvas);
    const scale = devicePixelRatio || 1, width = this.axes.clientWidth, height = this.axes.clientHeight;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const g = canvas.getContext('2d');
    g.scale(scale, scale);
    g.font = '11px system-ui, sans-serif';
    const css = getComputedStyle(this.axes);
    const xOf = (/** @type {number} */ i) => 60 + i * (width - 120) / (columns.length - 1);
    const places = columns.map(column => placesOf(sessions.map((/** @type {any} */ one) => valueOf(one, column))));
    const yOf = (/** @type {number} */ place) => height - 34 - place * (height - 60);
    sessions.forEach((/** @type {any} */ session, /** @type {number} */ s) => {
      g.strokeStyle = store.colourOf(session.run);
      g.lineWidth = 1.6;
      g.beginPath();
      let pen = false;
      columns.forEach((_, i) => {
        const place = places[i].at[s];
        if (place === null) pen = false;
        else if (pen) g.lineTo(xOf(i), yOf(place));
        else g.moveTo(xOf(i), yOf(place));
        pen = place !== null;
      });
      g.stroke();
    });
    g.fillStyle = css.getPropertyValue('--text');
    g.textAlign = 'center';
    columns.forEach((column, i) => {
      g.fillStyle = css.getPropertyValue('--soft');
      g.fillRect(xOf(i), 26, 1, height - 60);
      for (const {place, text} of places[i].marks) g.fillText(text, xOf(i) + 2, yOf(place) + (place > 0.5 ? -5 : 13));
      g.fillStyle = css.getPropertyValue('--text');
      const room = Math.floor((width - 120) / (columns.length - 1) / 6.2);
      g.fillText(column.title.length > room ? `${column.title.slice(0, room - 1)}…` : column.title, xOf(i), height - 5);
    });
  }
}

/**
 * Where values stand on an axis, 0 to 1.
 * @param {any[]} values
 */
function placesOf(values) {
  const present = values.filter(v => v !== null);
  if (present.every(isNumber)) {
    const numbers = present.map(numberOf).filter(Number.isFinite);
    const low = Math.min(...numbers), high = Math.max(...numbers);
    /** @type {(number | null)[]} */
    const at = values.map(v => v === null || !Number.isFinite(numberOf(v)) ? null : high > low ? (numberOf(v) - low) / (high - low) : 0.5);
    const marks = numbers.length === 0 ? [] : high > low ? [{place: 0, text: short(low, 4)}, {place: 1, text: short(high, 4)}] : [{place: 0.5, text: short(low, 4)}];
    return {at, marks};
  }
  const names = [...new Set(present.map(String))].sort(compareNames);
  const place = (/** @type {any} */ v) => names.length > 1 ? names.indexOf(String(v)) / (names.length - 1) : 0.5;
  return {at: values.map(v => v === null ? null : place(v)), marks: names.slice(0, 20).map(text => ({place: place(text), text}))};
}

/**
 * "adam" finds a text, "lr>0.1 units<=64" compare columns; all words must fit.
 * @param {string} filter
 * @param {Column[]} columns
 */
function fitsFilter(filter, columns) {
  const tests = filter.trim().split(/\s+/).filter(Boolean).map(word => {
    const found = /^(.+?)(<=|>=|<|>|=)(.+)$/.exec(word);
    const column = found && columns.find(one => one.title === found[1]);
    if (found && column) {
      const wanted = Number(found[3]);
      return (/** @type {any} */ session) => {
        const v = valueOf(session, column);
        if (found[2] === '=') return String(v) === found[3] || (isNumber(v) && numberOf(v) === wanted);
        if (!isNumber(v)) return false;
        const n = numberOf(v);
        return found[2] === '<' ? n < wanted : found[2] === '>' ? n > wanted : found[2] === '<=' ? n <= wanted : n >= wanted;
      };
    }
    const fits = pattern(word);
    return (/** @type {any} */ session) => !fits || fits.test(session.run) || columns.some(one => fits.test(String(valueOf(session, one))));
  });
  return (/** @type {any} */ session) => tests.every(test => test(session));
}

export const hparams = {
  name: 'hparams',
  title: 'HParams',
  plugins: ['hparams'],
  /** @param {HTMLElement} main */
  mount(main) {
    const table = new Table(main);
    return {
      update: (/** @type {any} */ change) => change.shape ? (table.draw(), table.load()) : table.load(),
      destroy: () => table.resize.disconnect(),
    };
  },
};
