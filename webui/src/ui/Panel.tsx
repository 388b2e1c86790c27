import type { ComponentChildren } from 'preact';

// A titled part of the page: name on the left, its tools on the right.
export function Panel(props: {
  title: string;
  class?: string;
  note?: ComponentChildren;
  tools?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class={`panel ${props.class ?? ''}`} aria-label={props.title}>
      <header class="panel-head">
        <h2>{props.title}</h2>
        <div class="panel-note">{props.note}</div>
        <div class="panel-tools">{props.tools}</div>
      </header>
      {props.children}
    </section>
  );
}

// What a panel says while it has nothing to show.
export function Empty(props: { children: ComponentChildren; error?: boolean }) {
  return (
    <div class={props.error ? 'empty empty-error' : 'empty'} role={props.error ? 'alert' : 'note'}>
      {props.children}
    </div>
  );
}
