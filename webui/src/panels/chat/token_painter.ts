// Maintains one span per token in an element, in token order. Tokens may arrive in any order.
import type { Token } from '../../net/types';

type Tokens = readonly (Token | undefined)[];

const ORIGINS: Readonly<Record<string, string>> = {
  generated: 'generated',
  prompt: 'prompt',
  reused: 'prompt, from the cache',
};

export class TokenPainter {
  private readonly host: HTMLElement;
  private readonly generated: boolean; // which tokens are shown
  private readonly shown: (Token | undefined)[] = [];
  private readonly spans: (HTMLElement | undefined)[] = [];
  private ids = false; // show IDs, because no token has text
  private marked: readonly HTMLElement[] = [];
  private hovered: HTMLElement | null = null;

  constructor(host: HTMLElement, part: 'prompt' | 'answer') {
    this.host = host;
    this.generated = part === 'answer';
  }

  show(tokens: Tokens): void {
    const ids = !tokens.some((token) => token !== undefined && token.text !== '');
    if (ids !== this.ids) this.shown.length = 0;
    this.ids = ids;
    tokens.forEach((token, i) => {
      if (!token || this.shown[i] === token || token.generated !== this.generated) return;
      this.shown[i] = token;
      this.fill(this.spanAt(i), token);
    });
  }

  select(first: number, count: number): void {
    for (const span of this.marked) span.classList.remove('selected');
    const spans = this.spans.slice(first, first + count);
    this.marked = spans.filter((span) => span !== undefined);
    for (const span of this.marked) span.classList.add('selected');
  }

  hover(index: number | null): void {
    this.hovered?.classList.remove('hovered');
    this.hovered = index === null ? null : (this.spans[index] ?? null);
    this.hovered?.classList.add('hovered');
  }

  private spanAt(index: number): HTMLElement {
    const known = this.spans[index];
    if (known) return known;
    const span = document.createElement('span');
    span.className = 'token';
    let before = index - 1;
    while (before >= 0 && !this.spans[before]) before -= 1;
    const previous = this.spans[before];
    if (previous) previous.after(span);
    else this.host.prepend(span);
    this.spans[index] = span;
    return span;
  }

  private fill(span: HTMLElement, token: Token): void {
    const origin = token.generated ? 'generated' : token.reused ? 'reused' : 'prompt';
    span.textContent = this.ids ? `${token.id} ` : token.text;
    span.classList.toggle('token-id', this.ids);
    span.dataset.index = String(token.index);
    span.dataset.origin = origin;
    span.title = `token ${token.index}, id ${token.id}, ${ORIGINS[origin] ?? ''}`;
  }
}
