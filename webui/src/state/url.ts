// The address of what is shown: `#1&session=<id>&step=<n>`. The number in front
// is the version of this form. A prompt never stands in it.

export interface Address {
  readonly session: string | null;
  readonly step: number | null;
}

const VERSION = '1';

export function toHash(address: Address): string {
  if (address.session === null) return '';
  const step = address.step === null ? '' : `&step=${address.step}`;
  return `#${VERSION}&session=${encodeURIComponent(address.session)}${step}`;
}

// What is missing or wrong is left out; another version is an empty address.
export function fromHash(hash: string): Address {
  const [version, ...parts] = hash.replace(/^#/, '').split('&');
  if (version !== VERSION) return { session: null, step: null };
  const fields = new URLSearchParams(parts.join('&'));
  const session = fields.get('session') ?? '';
  const step = fields.get('step') ?? '';
  return {
    session: session === '' ? null : session,
    step: /^\d{1,9}$/.test(step) ? Number(step) : null,
  };
}
