namespace runnel {}
