// Decorative icons. Each is used next to text or inside a labelled button.
const PATHS = {
  sun: 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8 13 13M3 13l1.2-1.2M11.8 4.2 13 3',
  moon: 'M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3Z',
  contrast: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2v12M8 5h5M8 8h6M8 11h5',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.4 10.4 14 14',
  expand: 'M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5 9 7M2.5 13.5 7 9',
  shrink: 'M13.5 6.5h-4v-4M2.5 9.5h4v4M9.5 6.5 14 2M6.5 9.5 2 14',
  move: 'M8 1.5v13M1.5 8h13M6 3.5l2-2 2 2M6 12.5l2 2 2-2M3.5 6l-2 2 2 2M12.5 6l2 2-2 2',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  left: 'M10 3 5 8l5 5',
  right: 'M6 3l5 5-5 5',
  down: 'M3.5 6 8 10.5 12.5 6',
  trash: 'M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4M6.7 6.5v4.5M9.3 6.5v4.5',
  download: 'M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11',
  upload: 'M8 10.5v-8M4.5 6 8 2.5 11.5 6M2.5 13.5h11',
  pencil: 'M2.5 13.5l.7-3L10.5 3l2.5 2.5-7.4 7.4zM9 4.5 11.5 7',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10M5.5 5.5h5v5h-5z',
  compare: 'M8 1.5v13M2 4.5h4v7H2zM10 4.5h4v7h-4z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  help: 'M4.6 5.2a3.4 3.2 0 1 1 4.9 2.9c-1 .5-1.5 1.2-1.5 2.6M8 13.6v.4',
  link: 'M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.4-2.4a2.6 2.6 0 0 0-3.7-3.7l-.8.8M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.1 9.2a2.6 2.6 0 0 0 3.7 3.7l.8-.8',
  side: 'M2 3h12v10H2zM6 3v10',
  inspector: 'M2 3h12v10H2zM10 3v10',
  reset: 'M3 3v4h4M3.4 7a5.2 5.2 0 1 1-.2 3',
  play: 'M4.5 2.5v11l8.5-5.5z',
  pause: 'M5 3v10M11 3v10',
  first: 'M4 3v10M12.5 3 7 8l5.5 5',
  last: 'M12 3v10M3.5 3 9 8l-5.5 5',
  record: 'M8 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M8 7a1 1 0 1 1 0 2 1 1 0 0 1 0-2',
  loop: 'M3 7a4 4 0 0 1 4-3h5M10 2l2 2-2 2M13 9a4 4 0 0 1-4 3H4M6 14l-2-2 2-2',
  live: 'M8 6.6a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 0 1 0-2.8M4.8 4.8a4.5 4.5 0 0 0 0 6.4M11.2 4.8a4.5 4.5 0 0 1 0 6.4M2.8 2.8a7.4 7.4 0 0 0 0 10.4M13.2 2.8a7.4 7.4 0 0 1 0 10.4',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" class="icon">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark() {
  const colours = ['#443a83', '#31688e', '#21918c', '#31688e', '#35b779', '#90d743', '#21918c'];
  return (
    <svg class="mark" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
      {[...colours, '#90d743', '#fde725'].map((fill, i) => (
        <rect
          key={i}
          x={7 * (i % 3)}
          y={7 * Math.floor(i / 3)}
          width="6"
          height="6"
          rx="1"
          fill={fill}
        />
      ))}
    </svg>
  );
}
