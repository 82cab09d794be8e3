// The tab of texts: Markdown, with a slider over every step.
import {ask} from './api.js';
import {CardList, emptyTab, planByTag, cardHeading, tagFilter} from './cards.js';
import {el} from './dom.js';
import {markdown} from './markdown.js';
import {Stepper} from './stepper.js';

/** @typedef {import('./store.js').Series} Series */

let plain = false;
/** @type {Set<TextCard>} */
const cards = new Set();

class TextCard {
  constructor() {
    this.id = 0;
    this.at = '';
    /** @type {any} */
    this.value = null;
    this.head = el('div', {class: 'heading'});
    this.content = el('div');
    this.stepper = new Stepper(place => this.showPlace(place));
    this.node = el('article', {class: 'card'}, el('div', {class: 'title'}, this.head), this.stepper.node, this.content);
    cards.add(this);
  }
  destroy() { cards.delete(this); }

  /** @param {Series[]} series */
  show([series]) {
    this.id = series.id;
    this.head.replaceChildren(cardHeading(series));
  }

  async load() { await this.stepper.load(this.id); }

  /** @param {{at: string}} place */
  async showPlace(place) {
    if (place.at === this.at) return;
    this.value = (await ask('/api/values', {series: this.id, at: place.at})).values[0];
    if (this.value.error) throw new Error(this.value.error);
    this.at = place.at;
    this.draw();
  }

  draw() {
    if (!this.value) return;
    const {texts, shape, cut} = this.value;
    /** @param {string} text */
    const one = text => plain ? el('pre', {text}) : markdown(text);
    const columns = shape.length === 2 ? shape[1] : 1;
    const many = texts.length > 1 ? el('table', {class: 'data'}) : null;
    if (many) {
      for (let i = 0; i < texts.length; i += columns) {
        many.append(el('tr', {}, ...texts.slice(i, i + columns).map((/** @type {string} */ text) => el('td', {}, one(text)))));
      }
    }
    this.content.replaceChildren(many ? el('div', {class: 'scroll'}, many) : one(texts[0] || ''),
      ...(cut ? [el('p', {class: 'note', text: 'The text is longer; this is its beginning.'})] : []));
  }
}

export const texts = {
  name: 'text',
  title: 'Text',
  plugins: ['text'],
  /** @param {HTMLElement} main */
  mount(main) {
    const box = el('div');
    const raw = el('input', {type: 'checkbox', onchange: () => {
      plain = raw.checked;
      for (const card of cards) card.draw();
    }});
    raw.checked = plain;
    main.append(el('div', {class: 'toolbar'}, tagFilter(), el('label', {}, raw, 'As it was written')), box);
    const list = new CardList(box, {
      plan: () => planByTag(['text']),
      make: () => new TextCard(),
      empty: () => emptyTab('texts', 'summary::text("notes", "**bold** words", step);'),
    });
    return {update: (/** @type {any} */ change) => list.update(change), destroy: () => list.destroy()};
  },
};
