// The first tab: what runs now and what ended, with the newest values of each run.
import {ask} from './api.js';
import {el, swatch, throttle} from './dom.js';
import {duration, moment, numberOf, short, whole} from './format.js';
import {emptyTab} from './cards.js';
import {LineChart} from './chart.js';
import {compareNames, store} from './store.js';

/** @typedef {import('./store.js').Series} Series */

const MOST_RUNS = 60, MOST_TAGS = 6, RUNS_FOR = 120;  // seconds without a value after which a run counts as ended
const HOW = `runnel::summary::create_file_writer("./tensorboard")
keras::callbacks::TensorBoard({.log_dir = "tensorboard"})`;

/**
 * Losses and accuracies first.
 * @param {Series} a
 * @param {Series} b
 */
function byInterest(a, b) {
  const rank = (/** @type {string} */ tag) => /loss/i.test(tag) ? 0 : /acc|auc|f1|score/i.test(tag) ? 1 : 2;
  return rank(a.tag) - rank(b.tag) || compareNames(a.tag, b.tag);
}

class RunTile {
  /** @param {string} run */
  constructor(run) {
    this.run = run;
    this.state = el('span', {class: 'note'});
    this.facts = el('div', {class: 'facts'});
    this.box = el('div', {class: 'chart spark'});
    this.label = el('div', {class: 'note'});
    this.node = el('article', {class: 'card', 'data-run': run}, el('div', {class: 'title'}, swatch(store.colourOf(run)),
      el('h3', {text: run, title: run}), this.state), this.label, this.box, this.facts);
    this.chart = new LineChart(this.box, {bare: true});
    this.drawn = '';
  }

  /** @param {Series[]} all of the run */
  async show(all) {
    const first = Math.min(...all.map(one => one.first_wall)), last = Math.max(...all.map(one => one.last_wall));
    const quiet = Date.now() / 1000 - last;
    this.state.textContent = quiet < RUNS_FOR ? `● runs, last value ${duration(Math.max(0, quiet))} ago` : `ended ${moment(last)}`;
    const scalars = all.filter(one => one.plugin === 'scalars').sort(byInterest);
    const longest = scalars.reduce((best, one) => !best || one.last_step - one.first_step > best.last_step - best.first_step ? one : best,
      /** @type {Series | null} */ (null));
    const rows = [['began', moment(first)], ['took', duration(last - first)]];
    if (longest && longest.last_step > longest.first_step) {
      rows.push(['steps', whole(longest.last_step)],
        ['time per step', duration((longest.last_wall - longest.first_wall) / (longest.last_step - longest.first_step))]);
    }
    for (const one of scalars.slice(0, MOST_TAGS)) rows.push([one.tag, short(numberOf(one.last_value), 6)]);
    if (scalars.length > MOST_TAGS) rows.push(['', `and ${scalars.length - MOST_TAGS} more`]);
    this.facts.replaceChildren(...rows.flatMap(([name, value]) => [el('span', {text: name}), el('span', {text: value})]));
    const [main] = scalars;
    this.box.hidden = !main;
    this.label.textContent = main ? main.tag : '';
    if (!main || this.drawn === `${main.id} ${main.count}`) return;
    this.drawn = `${main.id} ${main.count}`;
    const [line] = (await ask('/api/lines', {series: main.id, points: 300})).lines;
    if (!line) return;
    this.chart.set([{name: main.tag, colour: store.colourOf(this.run), xs: Float64Array.from(line.steps),
      ys: Float64Array.from(line.values, numberOf), smooth: null}], {xKind: 'step', logY: false, clip: true});
  }
}

export const overview = {
  name: 'overview',
  title: 'Overview',
  plugins: [],
  /** @param {HTMLElement} main */
  mount(main) {
    const note = el('p', {class: 'note'});
    const box = el('div', {class: 'tiles'});
    main.append(note, box);
    /** @type {Map<string, RunTile>} */
    const tiles = new Map();
    const draw = throttle(() => {
      const shown = store.shownRuns();
      /** @type {Map<string, Series[]>} */
      const runs = new Map();
      for (const series of store.series.values()) {
        if (!shown.has(series.run)) continue;
        const list = runs.get(series.run);
        if (list) list.push(series);
        else runs.set(series.run, [series]);
      }
      const latest = (/** @type {Series[]} */ list) => Math.max(...list.map(one => one.last_wall));
      // What runs comes first.
      const sorted = [...runs].sort((a, b) => latest(b[1]) - latest(a[1])).slice(0, MOST_RUNS);
      for (const [run, tile] of tiles) {
        if (sorted.some(([name]) => name === run)) continue;
        tile.chart.destroy();
        tile.node.remove();
        tiles.delete(run);
      }
      sorted.forEach(([run, list], i) => {
        const tile = tiles.get(run) || new RunTile(run);
        tiles.set(run, tile);
        if (box.children[i] !== tile.node) box.insertBefore(tile.node, box.children[i] || null);
        tile.show(list).catch(() => {});
      });
      note.textContent = runs.size > sorted.length ? `The ${sorted.length} newest of ${runs.size} runs` : '';
      main.querySelector('.empty')?.remove();
      if (runs.size === 0) main.append(emptyTab('runs', HOW));
    }, 1000);
    draw();
    const clock = setInterval(draw, 5000);
    return {
      update: draw,
      destroy: () => {
        clearInterval(clock);
        for (const tile of tiles.values()) tile.chart.destroy();
      },
    };
  },
};
