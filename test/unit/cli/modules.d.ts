/** The command line is JavaScript. `tsc -p bin` checks it, and these tests with the types that it has there. */
declare module "../../../cli/*";
