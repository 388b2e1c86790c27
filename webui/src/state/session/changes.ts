// The changes of a run that was altered at its stops.

export type Facts = Readonly<Record<string, string>>;

// What was changed, one after another; empty: nothing.
export function changesOf(facts: Facts | undefined): readonly string[] {
  const changes: string[] = [];
  for (;;) {
    const change = facts?.[`altered.${changes.length}`];
    if (change === undefined) return changes;
    changes.push(change);
  }
}
