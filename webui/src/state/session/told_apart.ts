// What tells sessions of one title apart: the model, and the settings that are not the same in all of
// them. Pure functions.
import { fileName } from '../../format';
import type { Session } from '../../net/types';

const SETTING = 'context.';

// The settings of the context, by their names: "threads".
export const settingsOf = (facts: Session['facts']): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(facts ?? {})
      .filter(([name]) => name.startsWith(SETTING))
      .map(([name, value]) => [name.slice(SETTING.length).replaceAll('_', ' '), value]),
  );

export interface Described {
  readonly id: string;
  readonly title: string;
  readonly model?: { readonly path: string } | null | undefined;
  readonly settings?: Readonly<Record<string, string>>;
}

export const modelNameOf = ({ model }: Described): string => (model ? fileName(model.path) : '');

// Those of the model and the others: of another model, each figure of a comparison differs.
export function byModel<Of extends Described>(
  sessions: readonly Of[],
  of: Described | null,
): { readonly same: readonly Of[]; readonly other: readonly Of[] } {
  const isSame = (one: Of): boolean => of !== null && modelNameOf(one) === modelNameOf(of);
  return { same: sessions.filter(isSame), other: sessions.filter((one) => !isSame(one)) };
}

interface Apart {
  readonly model: string; // file name
  readonly settings: string; // "threads 2, flash attention on"; empty: they are the same
}

// By id, of the sessions whose title another one has, too.
export function toldApart(sessions: readonly Described[]): ReadonlyMap<string, Apart> {
  const byTitle = new Map<string, Described[]>();
  for (const one of sessions) {
    const title = one.title || one.id;
    const same = byTitle.get(title);
    if (same) same.push(one);
    else byTitle.set(title, [one]);
  }
  const apart = new Map<string, Apart>();
  for (const group of byTitle.values()) {
    if (group.length < 2) continue;
    const names = [...new Set(group.flatMap(({ settings = {} }) => Object.keys(settings)))].sort();
    const different = names.filter((name) => group.some(({ settings }) => settings?.[name] !== group[0]?.settings?.[name])); // prettier-ignore
    for (const one of group) {
      const settings = different.map((name) => `${name} ${one.settings?.[name] ?? 'none'}`);
      apart.set(one.id, { model: modelNameOf(one), settings: settings.join(', ') });
    }
  }
  return apart;
}
