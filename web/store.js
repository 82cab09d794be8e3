// What the page knows: series, runs, and what the user chose. What is chosen stands in the address, so that a link
// shows the same.
import {ask} from './api.js';
import {pattern} from './dom.js';
import {numberOf} from './format.js';

/**
 * @typedef {{id: number, run: string, tag: string, plugin: string, count: number, first_step: number, last_step: number,
 *   first_wall: number, last_wall: number, last_value?: any, not_finite?: number, display_name?: string,
 *   description?: string}} Series
 */

const PALETTE = ['#2f7ed8', '#e8702a', '#2ca25f', '#c23b80', '#8b63d6', '#b58900', '#17a2b8', '#d64545', '#7a8b2d', '#9c6b4e'];

const DEFAULTS = {tab: '', runs: '', tags: '', off: '', smooth: '0.6', x: 'step', y: '', clip: '1', pin: '', share: '', open: ''};

class Store {
  constructor() {
    /** @type {Map<number, Series>} */
    this.series = new Map();
    /** @type {string[]} */
    this.runs = [];
    this.generation = 0;
    this.loading = true;
    /** @type {any} */
    this.summary = {logdirs: [], files: 0, bytes: 0, bytes_read: 0, complaints: [], version: ''};
    /** @type {Map<string, string>} */
    this.colours = new Map();
    /** @type {Record<string, string>} */
    this.view = {...DEFAULTS};
    /** @type {Set<(change: {series: Set<number>, shape: boolean}) => void>} */
    this.listeners = new Set();
    this.readAddress();
  }

  readAddress() {
    const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    for (const name of Object.keys(DEFAULTS)) this.view[name] = given[name] ?? DEFAULTS[/** @type {'tab'} */ (name)];
  }

  /** @param {Record<string, string>} changes */
  choose(changes) {
    Object.assign(this.view, changes);
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(this.view)) {
      if (value !== DEFAULTS[/** @type {'tab'} */ (name)]) query.set(name, value);
    }
    history.replaceState(null, '', `#${query}`);
    this.tell(new Set(), true);
  }

  /**
   * A list in the address.
   * @param {string} name
   * @returns {string[]}
   */
  list(name) { return this.view[name] ? JSON.parse(`[${this.view[name]}]`) : []; }
  /** @param {string} name @param {string[]} values */
  chooseList(name, values) { this.choose({[name]: JSON.stringify(values).slice(1, -1)}); }

  /** Asks for what changed since the last time. */
  async update() {
    const answer = await ask('/api/index', {since: this.generation});
    const changed = new Set();
    let shape = this.loading !== answer.loading || answer.whole || answer.runs.length !== this.runs.length;
    if (answer.whole) this.series.clear();
    for (const series of answer.series) {
      if (!this.series.has(series.id)) shape = true;
      series.first_wall = numberOf(series.first_wall);
      series.last_wall = numberOf(series.last_wall);
      this.series.set(series.id, series);
      changed.add(series.id);
    }
    this.generation = answer.generation;
    this.loading = answer.loading;
    this.summary = answer;
    this.runs = answer.runs;
    for (const run of this.runs) {
      if (!this.colours.has(run)) this.colours.set(run, colour(this.colours.size));
    }
    if (changed.size > 0 || shape) this.tell(changed, shape);
  }

  /** @param {Set<number>} series @param {boolean} shape whether more than values changed */
  tell(series, shape) { for (const listener of this.listeners) listener({series, shape}); }

  /** @param {string} run */
  colourOf(run) { return this.colours.get(run) || '#888'; }

  /** The runs that the filter lets through, whether shown or not. */
  listedRuns() {
    const fits = pattern(this.view.runs);
    return this.runs.filter(run => !fits || fits.test(run));
  }

  /** @returns {Set<string>} */
  shownRuns() {
    const off = new Set(this.list('off'));
    return new Set(this.listedRuns().filter(run => !off.has(run)));
  }

  /** The series of some plugins by tag, of the runs that are shown and tags that fit the filter.
   * @param {string[]} plugins @returns {Map<string, Series[]>} */
  byTag(plugins) {
    const shown = this.shownRuns(), fits = pattern(this.view.tags);
    /** @type {Map<string, Series[]>} */
    const tags = new Map();
    for (const series of this.series.values()) {
      if (!plugins.includes(series.plugin) || !shown.has(series.run)) continue;
      if (fits && !fits.test(series.tag)) continue;
      const list = tags.get(series.tag);
      if (list) list.push(series);
      else tags.set(series.tag, [series]);
    }
    for (const list of tags.values()) list.sort((a, b) => compareNames(a.run, b.run));
    return new Map([...tags].sort((a, b) => compareNames(a[0], b[0])));
  }

  /** @param {string[]} plugins */
  has(plugins) { return [...this.series.values()].filter(series => plugins.includes(series.plugin)).length; }
}

/** @param {number} i */
function colour(i) {
  return i < PALETTE.length ? PALETTE[i] : `hsl(${Math.round(i * 137.508) % 360} ${55 + i * 7 % 30}% ${42 + i * 5 % 16}%)`;
}

/**
 * Names with numbers in the order of people: step_2 before step_10.
 * @param {string} a
 * @param {string} b
 */
export function compareNames(a, b) { return collator.compare(a, b); }
const collator = new Intl.Collator('en', {numeric: true});

export const store = new Store();
