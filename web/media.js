// The tabs of images and audio: a card for each tag and run, with a slider over every step.
import {ask, mediaUrl} from './api.js';
import {CardList, emptyTab, planByTag, cardHeading, tagFilter} from './cards.js';
import {el} from './dom.js';
import {bytes} from './format.js';
import {Stepper} from './stepper.js';

/** @typedef {import('./store.js').Series} Series */

const look = {brightness: 1, contrast: 1, zoom: 1, together: false};
/** @type {Set<MediaCard>} */
const cards = new Set();

class MediaCard {
  /** @param {boolean} image */
  constructor(image) {
    this.image = image;
    this.id = 0;
    this.at = '';
    this.head = el('div', {class: 'heading'});
    this.content = el('div', {class: image ? 'pictures' : ''});
    this.facts = el('div', {class: 'note'});
    this.stepper = new Stepper(place => this.showPlace(place));
    this.stepper.range.addEventListener('input', () => this.moveOthers());
    this.node = el('article', {class: 'card'},
      el('div', {class: 'title'}, this.head, image ? el('button', {class: 'quiet', title: 'Whole width',
        'aria-label': 'Whole width', text: '⤢', onclick: () => this.node.classList.toggle('wide')}) : null),
      this.stepper.node, this.facts, this.content);
    cards.add(this);
  }

  destroy() { cards.delete(this); }

  moveOthers() {
    if (!look.together) return;
    const step = this.stepper.places[this.stepper.chosen]?.step;
    if (step === undefined) return;
    for (const card of cards) if (card !== this && card.stepper.places.length > 0) card.stepper.chooseStep(step);
  }

  /** @param {Series[]} series */
  show([series]) {
    this.id = series.id;
    this.head.replaceChildren(cardHeading(series));
    this.node.dataset.run = series.run;
  }

  async load() { await this.stepper.load(this.id); }

  /** @param {{at: string}} place */
  async showPlace(place) {
    if (place.at === this.at) return;
    const value = (await ask('/api/values', {series: this.id, at: place.at})).values[0];
    if (value.error) throw new Error(value.error);
    this.at = place.at;
    if (!this.image) return this.showClips(value.clips);
    this.facts.textContent = `${value.width} × ${value.height}` + (value.types.length > 1 ? `, ${value.types.length} images` : '');
    const old = [...this.content.children];
    const images = await Promise.all(value.types.map(async (/** @type {string} */ type, /** @type {number} */ i) => {
      const image = old[i] instanceof HTMLImageElement ? old[i] : el('img', {alt: `image ${i + 1}`});
      image.src = mediaUrl(this.id, this.at, i);
      image.dataset.width = value.width;
      this.dress(image);
      await image.decode().catch(() => {});
      return image;
    }));
    this.content.replaceChildren(...images);
  }

  /** @param {any} image */
  dress(image) {
    image.style.filter = look.brightness === 1 && look.contrast === 1 ? '' : `brightness(${look.brightness}) contrast(${look.contrast})`;
    const scale = look.zoom === 0 ? 1 / devicePixelRatio : look.zoom;
    image.style.width = `${Math.max(1, Number(image.dataset.width) * scale)}px`;
    image.classList.toggle('sharp', scale * devicePixelRatio >= 1);
  }

  /** @param {any[]} clips */
  showClips(clips) {
    this.facts.textContent = '';
    this.content.replaceChildren(...clips.map((clip, i) => {
      const url = mediaUrl(this.id, this.at, i);
      const note = el('div', {class: 'note'}, `${bytes(clip.bytes)} `, el('a', {href: url, download: `clip_${i}.wav`, text: 'save'}));
      const player = el('audio', {controls: true, preload: 'metadata', src: url,
        onerror: () => note.append(' · the browser cannot play this clip; its sample rate may be unusual')});
      return el('div', {}, clip.label ? el('div', {class: 'note', text: clip.label}) : null, player, note);
    }));
  }
}

/** @param {string} text @param {'brightness' | 'contrast'} name */
function adjust(text, name) {
  const range = el('input', {type: 'range', min: '0', max: '3', step: '0.05', 'aria-label': text, title: 'Double click: as it is'});
  range.value = String(look[name]);
  const apply = () => {
    look[name] = Number(range.value);
    for (const card of cards) for (const image of card.content.children) card.dress(image);
  };
  range.addEventListener('input', apply);
  range.addEventListener('dblclick', () => { range.value = '1'; apply(); });
  return el('label', {}, text, range);
}

function imageTools() {
  const zoom = el('select', {'aria-label': 'Size', onchange: () => {
    look.zoom = Number(zoom.value);
    for (const card of cards) for (const image of card.content.children) card.dress(image);
  }}, ...[['1', '100 %'], ['0', 'Screen pixels'], ['2', '200 %'], ['4', '400 %'], ['8', '800 %'], ['0.5', '50 %']].map(([value, text]) => el('option', {value, text})));
  zoom.value = String(look.zoom);
  return [el('label', {}, 'Size', zoom), adjust('Brightness', 'brightness'), adjust('Contrast', 'contrast')];
}

function together() {
  const box = el('input', {type: 'checkbox', onchange: () => { look.together = box.checked; }});
  box.checked = look.together;
  return el('label', {}, box, 'Move all sliders together');
}

/** @param {string} name @param {string} title @param {string} plugin @param {string} how */
function tab(name, title, plugin, how) {
  return {
    name, title, plugins: [plugin],
    /** @param {HTMLElement} main */
    mount(main) {
      const box = el('div');
      main.append(el('div', {class: 'toolbar'}, tagFilter(), ...(plugin === 'images' ? imageTools() : []), together()), box);
      const list = new CardList(box, {
        plan: () => planByTag([plugin]),
        make: () => new MediaCard(plugin === 'images'),
        empty: () => emptyTab(title.toLowerCase(), how),
      });
      return {update: (/** @type {any} */ change) => list.update(change), destroy: () => list.destroy()};
    },
  };
}

export const images = tab('images', 'Images', 'images', 'summary::image("samples", pictures, step);  // [k, height, width, channels]');
export const audio = tab('audio', 'Audio', 'audio', 'summary::audio("speech", clips, 16000, step);  // [k, frames, channels]');
