/** Files of images: real headers around no pixels, and files that lie. All are base64 texts. */

export type Size = readonly [width: number, height: number];

const bytesOf = (text: string): number[] => [...text].map((char) => char.charCodeAt(0));
const big = (value: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => Math.floor(value / 256 ** (count - 1 - at)) % 256);
const little = (value: number, count: number): number[] => big(value, count).toReversed();
const base64 = (bytes: readonly number[]): string => Buffer.from(bytes).toString("base64");

const PNG_SIGNATURE = [0x89, ...bytesOf("PNG\r\n\x1a\n")];
const chunk = (type: string, data: readonly number[]): number[] => [
  ...big(data.length, 4),
  ...bytesOf(type),
  ...data,
  0,
  0,
  0,
  0,
];
const ihdr = ([width, height]: Size): number[] => chunk("IHDR", [...big(width, 4), ...big(height, 4), 8, 2, 0, 0, 0]);
const IDAT = chunk("IDAT", [1, 2, 3]);

/** `profile`: bytes of a colour profile before the pixels. */
export function png(size: Size, { profile = 0 } = {}): string {
  const before = profile === 0 ? [] : chunk("iCCP", Array<number>(profile).fill(7));
  return base64([...PNG_SIGNATURE, ...ihdr(size), ...before, ...IDAT, ...chunk("IEND", [])]);
}

const segment = (marker: number, data: readonly number[]): number[] => [
  0xff,
  marker,
  ...big(data.length + 2, 2),
  ...data,
];
const frame = ([width, height]: Size, marker = 0xc0): number[] =>
  segment(marker, [8, ...big(height, 2), ...big(width, 2), 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
const SCAN = [...segment(0xda, [3, 1, 0, 2, 0x11, 3, 0x11, 0, 0x3f, 0]), 1, 2, 3, 0xff, 0xd9];

/** `profiles`: segments of 60,000 bytes before the frame. */
export function jpeg(size: Size, { profiles = 0, progressive = false } = {}): string {
  const profile = Buffer.concat([Buffer.from([0xff, 0xe2, ...big(60_002, 2)]), Buffer.alloc(60_000, 9)]);
  const begin = Buffer.from([0xff, 0xd8, ...segment(0xe0, bytesOf("JFIF\0"))]);
  const end = Buffer.from([...frame(size, progressive ? 0xc2 : 0xc0), ...SCAN]);
  return Buffer.concat([begin, ...Array.from({ length: profiles }, () => profile), end]).toString("base64");
}

const gifImage = ([width, height]: Size): number[] => [
  ...[0x2c, 0, 0, 0, 0, ...little(width, 2), ...little(height, 2), 0],
  ...[2, 2, 0x4c, 1, 0],
];
const GIF_TABLE = [0, 0, 0, 255, 255, 255];

export function gif(size: Size): string {
  const screen = [...little(size[0], 2), ...little(size[1], 2), 0x80, 0, 0];
  const control = [0x21, 0xf9, 4, 0, 0, 0, 0, 0];
  return base64([...bytesOf("GIF89a"), ...screen, ...GIF_TABLE, ...control, ...gifImage(size), 0x3b]);
}

const riff = (chunks: readonly number[]): string =>
  base64([...bytesOf("RIFF"), ...little(chunks.length + 4, 4), ...bytesOf("WEBP"), ...chunks]);
const webpChunk = (type: string, data: readonly number[]): number[] => [
  ...bytesOf(type),
  ...little(data.length, 4),
  ...data,
  ...(data.length % 2 === 0 ? [] : [0]),
];
const lossy = ([width, height]: Size): number[] =>
  webpChunk("VP8 ", [0x10, 0, 0, 0x9d, 1, 0x2a, ...little(width, 2), ...little(height, 2), 9, 9]);
const lossless = ([width, height]: Size): number[] =>
  webpChunk("VP8L", [0x2f, ...little(width - 1 + (height - 1) * 2 ** 14, 4), 9]);
const canvas = ([width, height]: Size, flags = 0): number[] =>
  webpChunk("VP8X", [flags, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3)]);

export function webp(size: Size, form: "lossy" | "lossless" | "extended" = "lossy"): string {
  if (form === "extended") return riff([...canvas(size), ...webpChunk("ICCP", [1, 2, 3]), ...lossy(size)]);
  return riff(form === "lossy" ? lossy(size) : lossless(size));
}

/** A URL that has the image. */
export function dataUrl(type: string, data: string): string {
  return `data:image/${type};base64,${data}`;
}

/** Files whose size no reader may believe: their `seen` size is what some decoder finds. */
export const HOSTILE: readonly { name: string; type: string; data: string; seen: Size }[] = [
  {
    ...{ name: "a PNG with a second header", type: "png", seen: [8_000, 8_000] },
    data: base64([...PNG_SIGNATURE, ...ihdr([1, 1]), ...ihdr([8_000, 8_000]), ...IDAT]),
  },
  {
    ...{ name: "an animated PNG", type: "png", seen: [4_000, 4_000] },
    data: base64([...PNG_SIGNATURE, ...ihdr([1, 1]), ...chunk("acTL", [0, 0, 0, 9, 0, 0, 0, 0]), ...IDAT]),
  },
  {
    ...{ name: "a PNG cut off in its header", type: "png", seen: [4_000, 4_000] },
    data: base64([...PNG_SIGNATURE, ...ihdr([1, 1]).slice(0, 14)]),
  },
  {
    ...{ name: "a PNG without pixels", type: "png", seen: [4_000, 4_000] },
    data: base64([...PNG_SIGNATURE, ...ihdr([1, 1]), ...chunk("IEND", [])]),
  },
  {
    ...{ name: "a PNG with white space in its base64", type: "png", seen: [4_000, 4_000] },
    data: png([1, 1]).replace(/^.{12}/, "$& "),
  },
  {
    ...{ name: "a JPEG with two frames", type: "jpeg", seen: [6_000, 6_000] },
    data: base64([0xff, 0xd8, ...frame([1, 1]), ...frame([6_000, 6_000]), ...SCAN]),
  },
  {
    ...{ name: "a JPEG whose height comes later", type: "jpeg", seen: [6_000, 6_000] },
    data: jpeg([6_000, 0]),
  },
  {
    ...{ name: "a JPEG with more segments than are read", type: "jpeg", seen: [6_000, 6_000] },
    data: base64([0xff, 0xd8, ...Array.from({ length: 300 }, () => segment(0xfe, [1])).flat(), ...frame([1, 1])]),
  },
  {
    ...{ name: "a GIF with a frame beyond its screen", type: "gif", seen: [5_000, 5_000] },
    data: base64([...bytesOf("GIF89a"), 1, 0, 1, 0, 0x80, 0, 0, ...GIF_TABLE, ...gifImage([5_000, 5_000])]),
  },
  {
    ...{ name: "an animated GIF", type: "gif", seen: [5_000, 5_000] },
    data: base64([
      ...[...bytesOf("GIF89a"), 1, 0, 1, 0, 0x80, 0, 0, ...GIF_TABLE],
      ...[0x21, 0xff, 11, ...bytesOf("NETSCAPE2.0"), 3, 1, 0, 0, 0, ...gifImage([1, 1])],
    ]),
  },
  {
    ...{ name: "a WebP whose frame does not fit its canvas", type: "webp", seen: [7_000, 7_000] },
    data: riff([...canvas([1, 1]), ...lossy([7_000, 7_000])]),
  },
  {
    ...{ name: "an animated WebP", type: "webp", seen: [7_000, 7_000] },
    data: riff([...canvas([1, 1], 2), ...webpChunk("ANMF", [1, 2])]),
  },
  {
    ...{ name: "a drawing", type: "svg+xml", seen: [9_000, 9_000] },
    data: base64(bytesOf('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')),
  },
  { name: "a bitmap", type: "bmp", seen: [9_000, 9_000], data: base64([...bytesOf("BM"), 1, 2, 3, 4, 5, 6]) },
  { name: "nothing", type: "png", seen: [9_000, 9_000], data: "" },
];

/** What is no image, whatever it calls itself: it has any number of pages or seconds. */
export const NO_IMAGES: readonly { name: string; url: string }[] = [
  { name: "a PDF", url: `data:application/pdf;base64,${base64(bytesOf("%PDF-1.7 1 0 obj"))}` },
  { name: "a PDF that calls itself an image", url: dataUrl("png", base64(bytesOf("%PDF-1.7 1 0 obj"))) },
  { name: "an image that calls itself a PDF", url: `data:application/pdf;base64,${png([1, 1])}` },
  { name: "a film", url: dataUrl("png", base64([0, 0, 0, 24, ...bytesOf("ftypmp42"), 0, 0, 0, 0])) },
  { name: "a sound", url: dataUrl("webp", base64([...bytesOf("RIFF"), 9, 9, 9, 9, ...bytesOf("WAVEfmt ")])) },
  { name: "a text", url: "data:,hello" },
];

/** Sizes of photos, screens, scans and pictures of the web. */
export const REAL_SIZES: readonly Size[] = [
  ...([
    [4032, 3024],
    [3024, 4032],
    [4000, 3000],
    [3840, 2160],
    [2048, 1536],
    [1600, 1200],
    [1536, 2048],
  ] as const),
  ...([
    [1080, 2400],
    [1179, 2556],
    [1170, 2532],
    [1290, 2796],
    [750, 1334],
    [1080, 1920],
    [828, 1792],
  ] as const),
  ...([
    [1920, 1080],
    [2560, 1440],
    [1366, 768],
    [1440, 900],
    [1280, 720],
    [1280, 800],
    [1680, 1050],
  ] as const),
  ...([
    [3456, 2234],
    [2880, 1800],
    [1512, 982],
    [1024, 768],
    [800, 600],
    [640, 480],
    [1200, 630],
  ] as const),
  ...([
    [600, 400],
    [300, 250],
    [728, 90],
    [512, 512],
    [1024, 1024],
    [256, 256],
    [768, 1024],
  ] as const),
  ...([
    [1536, 1024],
    [1024, 1536],
    [1792, 1024],
    [1240, 1754],
    [1654, 2339],
    [2480, 3508],
    [850, 1100],
  ] as const),
  ...([
    [1600, 900],
    [900, 600],
    [1000, 500],
    [1080, 1080],
    [1080, 1350],
    [6000, 1500],
    [600, 1800],
  ] as const),
  ...([
    [1000, 1000],
    [1500, 1000],
    [1000, 1500],
    [960, 540],
    [1184, 864],
    [1344, 768],
    [1152, 896],
  ] as const),
  ...([
    [2000, 1333],
    [1333, 2000],
    [720, 1280],
    [480, 360],
  ] as const),
];

/** The image of a size, in one of the formats in turn. */
export function fileOf(size: Size, turn: number): string {
  const makers = [
    () => dataUrl("png", png(size)),
    () => dataUrl("jpeg", jpeg(size, { profiles: turn % 3, progressive: turn % 2 === 0 })),
    () => dataUrl("webp", webp(size, "lossy")),
    () => dataUrl("webp", webp(size, "lossless")),
    () => dataUrl("webp", webp(size, "extended")),
    () => dataUrl("gif", gif(size)),
    () => dataUrl("png", png(size, { profile: 3_000 })),
  ];
  return makers[turn % makers.length]?.() ?? "";
}
