// The editor of a statement: CodeMirror in a tree of its own (shadow root). There its style sheets are
// objects; in the document it would write style elements, which the content security policy forbids.
import { autocompletion, closeBrackets, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'; // prettier-ignore
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { SQLite, sql, type SQLNamespace } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorState, StateEffect, StateField } from '@codemirror/state';
import { Decoration, drawSelection, EditorView, highlightSpecialChars, keymap, placeholder, type DecorationSet } from '@codemirror/view'; // prettier-ignore
import { tags } from '@lezer/highlight';
import type { SqlTable } from './schema';

export interface SqlEditor {
  readonly text: () => string;
  readonly set: (text: string) => void;
  readonly mark: (position: number | null) => void; // where the error is
  readonly focus: () => void;
  readonly destroy: () => void;
}

const setMark = StateEffect.define<number | null>();
const wrong = Decoration.mark({ class: 'cm-wrong' });

// The word of the error, until the text changes.
const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (now, transaction) => {
    for (const effect of transaction.effects) {
      if (!effect.is(setMark)) continue;
      if (effect.value === null) return Decoration.none;
      const { doc } = transaction.state;
      const from = Math.min(effect.value, Math.max(0, doc.length - 1));
      const word = /^\w+/.exec(doc.sliceString(from, from + 100))?.[0].length ?? 1;
      const to = Math.min(doc.length, from + word);
      return from < to ? Decoration.set([wrong.range(from, to)]) : Decoration.none;
    }
    return transaction.docChanged ? Decoration.none : now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const theme = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--field)', fontSize: '12.5px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--text)', padding: '6px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selected)' },
  '.cm-wrong': { textDecoration: 'underline wavy var(--bad) 1.5px', textUnderlineOffset: '3px' },
  '.cm-placeholder': { color: 'var(--text-dim)' },
  '.cm-matchingBracket': { backgroundColor: 'var(--hover)', outline: '1px solid var(--line-strong)' },
  '.cm-tooltip': { backgroundColor: 'var(--raised)', border: '1px solid var(--line-strong)', color: 'var(--text)' },
  '.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: '200px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  '.cm-completionDetail': { color: 'var(--text-dim)', fontStyle: 'normal', marginLeft: '10px' },
  'li[aria-selected] .cm-completionDetail': { color: 'var(--on-accent)' },
  '.cm-completionInfo': { maxWidth: '320px', padding: '4px 8px' },
}); // prettier-ignore

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--g-out)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--g-infra)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--g-in)' },
  { tag: [tags.lineComment, tags.blockComment], color: 'var(--text-dim)', fontStyle: 'italic' },
  { tag: tags.special(tags.name), color: 'var(--g-logits)', fontWeight: '600' },
  { tag: [tags.typeName, tags.standard(tags.name)], color: 'var(--accent)' },
]);

const schemaOf = (tables: readonly SqlTable[]): SQLNamespace =>
  Object.fromEntries(
    tables.map(({ name, about, columns }) => [
      name,
      {
        self: { label: name, type: 'type', detail: 'table', info: about },
        children: columns.map((column): Completion => ({
          label: column.name,
          type: 'property',
          detail: column.type,
          ...(column.meaning === '' ? {} : { info: column.meaning }),
        })),
      },
    ]),
  );

export function createEditor(options: {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly label: string;
  readonly tables: readonly SqlTable[];
  readonly parameters: Readonly<Record<string, string>>; // what each is
  readonly changed: (text: string) => void;
  readonly run: () => void;
}): SqlEditor {
  const { parent, tables, parameters } = options;
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' });
  root.replaceChildren();
  const dialect = sql({ dialect: SQLite, schema: schemaOf(tables), upperCaseKeywords: true });
  const complete = (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/:\w*/);
    if (!word) return null;
    return {
      from: word.from,
      options: Object.entries(parameters).map(([name, detail]) => ({ label: `:${name}`, type: 'variable', detail })),
    };
  }; // prettier-ignore
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        keymap.of([
          {
            key: 'Mod-Enter',
            run: () => {
              options.run();
              return true;
            },
          },
        ]),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ activateOnTypingDelay: 60, icons: false }),
        dialect,
        dialect.language.data.of({ autocomplete: columnsOfTables(tables) }),
        dialect.language.data.of({ autocomplete: complete }),
        syntaxHighlighting(colours),
        marked,
        theme,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': options.label }),
        placeholder('SELECT … Ctrl+Enter runs it; Tab leaves the editor.'),
        // Tab moves on, as everywhere in the page.
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    set: (text) => {
      if (text !== view.state.doc.toString())
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    mark: (position) => {
      view.dispatch({ effects: setMark.of(position) });
    },
    focus: () => {
      view.focus();
    },
    destroy: () => {
      view.destroy();
    },
  };
}

// The columns of the tables that the statement names, also where no table is written before a dot.
function columnsOfTables(tables: readonly SqlTable[]) {
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[a-z_]\w*/i);
    if (!word || (word.from > 0 && /[.:]/.test(context.state.sliceDoc(word.from - 1, word.from))))
      return null;
    const text = context.state.doc.toString().toLowerCase();
    const named = tables.filter(({ name }) => new RegExp(`\\b${name}\\b`).test(text));
    const seen = new Set<string>();
    return {
      from: word.from,
      options: named.flatMap(({ name, columns }) =>
        columns
          .filter((column) => !seen.has(column.name) && seen.add(column.name))
          .map((column) => ({
            label: column.name,
            type: 'property',
            detail: column.type === '' ? name : `${name}, ${column.type}`,
            ...(column.meaning === '' ? {} : { info: column.meaning }),
            boost: 1,
          })),
      ),
    };
  };
}
