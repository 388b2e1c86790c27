// The line above the rows: what they are, and their sums.
import type { ComponentChildren } from 'preact';

export function Note({ children }: { children: ComponentChildren }) {
  return (
    <p class="table-note note" role="status">
      {children}
    </p>
  );
}
